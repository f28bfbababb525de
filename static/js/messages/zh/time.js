/** 时间轴与回放。 */

export default {
  "time.title": "时间轴",
  "time.live": "实时",
  "time.replay": "回放，{time}",
  "time.value": { one: "{time}，{n} 秒前", other: "{time}，{n} 秒前" },
  "time.said-replay": "页面正在显示过去的情况。按 v 回到实时。",
  "time.said-live": "页面正在显示当前情况。",
  "time.pause": "暂停",
  "time.play": "播放",
  "time.slow": "慢动作",
  "time.slower": "减速",
  "time.faster": "加速",
  "time.speed": "{speed}×",
  "time.to-live": "回到实时",
  "time.track": "页面显示的时刻",
  "time.track-title": "最近 15 分钟：{requests}，其提示词 token 的 {rate} 被复用，{evicted}被逐出。可拖动或使用方向键。",
  "time.requests": "请求",
  "time.rate": "命中率",
  "time.evicted": "逐出",

  "keys.time": "转到时间轴；方向键移动一秒,Page Up 和 Page Down 移动 15 秒",
  "keys.pause": "暂停页面，或继续播放",
  "keys.slower": "慢动作，再按则更慢",
  "keys.faster": "加速",
  "keys.live": "从过去回到当前",

  "info.timeline.name": "时间轴",
  "info.timeline.what": "页面收到并保留的全部事件，任何时刻都可以重新显示：届时整个页面都显示那一刻。柱：开始的请求。蓝：被复用的提示词 token 占比。红：被逐出的块。",
  "info.timeline.window": "打开本页以来的最近 15 分钟；每 5 秒一根柱；事件过多时保留的时间较短",
  "info.timeline.source": "页面按顺序收到的事件，以仪表盘的时钟为准；命中率来自每个响应的 usage",
  "info.timeline.formula": "某一时刻的状态 = 在其之前保存的状态 + 截至该时刻的每个事件；块的文本则是现在查询的",
};
