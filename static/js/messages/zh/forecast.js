/** 发送前的标尺与预测，以及结果。 */

export default {
  "forecast.title": "发送之前",
  "forecast.strip": { one: "提示词的 {n} 个块", other: "提示词的 {n} 个块" },
  "forecast.system": "系统提示词",
  "forecast.question": "问题",
  "forecast.asking": "正在统计 token …",
  "forecast.too-long": "输入时不做预测：超过 {n} 个字符。仍然可以发送。",
  "forecast.reuse": {
    one: "{blocks} 个块中有 {reused} 个已在缓存中，将被复用{several}：{n} 个 token 中的 {cached} 个。",
    other: "{blocks} 个块中有 {reused} 个已在缓存中，将被复用{several}：{n} 个 token 中的 {cached} 个。",
  },
  "forecast.none": { one: "没有可复用的：{blocks} 个块、{n} 个 token 全部要计算。", other: "没有可复用的：{blocks} 个块、{n} 个 token 全部要计算。" },
  "forecast.rank": "（rank {rank}）",
  "forecast.no-events": { one: "{blocks} 个块，共 {n} 个 token。", other: "{blocks} 个块，共 {n} 个 token。没有 KV 事件，无法知道其中哪些已缓存。" },
  "forecast.time": "首个 token 约 {about} 后到达（十次中有八次在 {early} 到 {late} 之间）。",
  "forecast.no-time": "暂无时间预测：这台服务器回答的请求还太少，无法据此学习。",
  "forecast.tail": {
    one: "最后 {n} 个 token 填不满一个块，因此总要计算。",
    other: "最后 {n} 个 token 填不满一个块，因此总要计算。",
  },
  "forecast.no-tail": "它正好填满最后一个 {size} token 的块；但为了最后一个 token，这个块仍要重新计算。",
  "forecast.kind.reused": { one: "{n} 个块：已缓存，将被复用", other: "{n} 个块：已缓存，将被复用" },
  "forecast.kind.resident": { one: "{n} 个块：已缓存，但位于第一个缺失的块之后", other: "{n} 个块：已缓存，但位于第一个缺失的块之后" },
  "forecast.kind.computed": { one: "{n} 个块：将要计算", other: "{n} 个块：将要计算" },
  "forecast.kind.unknown": { one: "{n} 个块：不知道是否已缓存", other: "{n} 个块：不知道是否已缓存" },
  "forecast.kind.tail": "最后一个块未满：从不缓存",

  "info.forecast.name": "输入时的预测",
  "info.forecast.what":
    "表单里的提示词如果现在发送会遇到什么。蓝色实心块已缓存并将被复用，橙色斜纹块将要计算，空心框是填不满一个块的尾部。系统提示词的文字背后是同样的颜色。",
  "info.forecast.window": "此刻。停止按键四分之一秒后重新询问，块进出缓存时也会重新询问。",
  "info.forecast.source": "token 来自服务器自己的分词器及其聊天模板；已缓存的块来自 KV 事件的镜像；时间来自这台服务器未排队请求的拟合线。",
  "info.forecast.formula": "缓存的 token = 从第一个块起连续已缓存的满块，最多 ⌊(提示词 token − 1) ÷ 块大小⌋ 个块",
};
