/** What the info buttons say, in Simplified Chinese. */

export default {
  "info.about": "说明：{name}",
  "info.window": "窗口",
  "info.source": "来源",
  "info.formula": "公式",

  "info.hit-rate.name": "命中率",
  "info.hit-rate.what": "服务器在查找请求时，于前缀缓存中找到的提示词 token 占比。按 token 计，不按请求计。",
  "info.hit-rate.window": "自服务器启动以来；重启后重新计数。",
  "info.hit-rate.source": "服务器自己的计数器，读自其指标页：vllm:prefix_cache_hits 与 vllm:prefix_cache_queries。",
  "info.hit-rate.formula": "命中的 token 数 ÷ 查找的 token 数",

  "info.ttft.name": "首 token 时延，热与冷",
  "info.ttft.what": "从发出请求到收到回答第一段文字的时间。热：可复用的块中至少一半被复用；冷：不到一半。",
  "info.ttft.window": "本页保留的已完成请求。",
  "info.ttft.source": "代理处的本仪表盘时钟，仅限流式回答。使用内置引擎时，时延本身为模型估算。",
  "info.ttft.formula": "各组首 token 时延的中位数",

  "info.reused.name": "复用的提示词 token",
  "info.reused.what": "键和值来自缓存、服务器无需重新计算的提示词 token。",
  "info.reused.window": "自服务器启动以来。",
  "info.reused.source": "服务器的计数器。查找过但没有找到的即为计算。",
  "info.reused.formula": "计算 = 查找的 token 数 − 命中的 token 数",

  "info.pool.name": "块池中的块",
  "info.pool.what": "KV 缓存块当前的用途：被进行中的请求持有；已缓存且空闲，可被复用或取走；或者没有可复用的内容。",
  "info.pool.window": "当前。",
  "info.pool.source": "KV 事件，在此逐块镜像；块池大小来自服务器配置。使用中的块由经过此处的请求的块表推断。",
  "info.pool.formula": "其余 = 块池大小 − 1（空块）− 已缓存的块（含副本）",

  "info.lanes.name": "复用的块 / 全部块",
  "info.lanes.what": "一个提示词有多少块在缓存中找到。总数包含从不缓存的未满尾块，所以同一提示词发送两次，除最后一块外全部复用。",
  "info.lanes.window": "单个请求。",
  "info.lanes.source": "服务器给出时取响应的 usage，否则由 KV 事件推断。格子依据服务器的复用报告与写入的块。",
  "info.lanes.formula": "复用块数 = 缓存的 token 数 ÷ 块大小；至多 ⌊(提示词 token 数 − 1) ÷ 块大小⌋",

  "info.lane-time.name": "单个请求的首 token 时延",
  "info.lane-time.what": "收到此回答第一段文字前的时间。非流式回答取服务器自己给出的时间。",
  "info.lane-time.window": "单个请求。",
  "info.lane-time.source": "代理处的本仪表盘时钟；非流式回答用服务器时钟（参数 --enable-per-request-metrics）。",
  "info.lane-time.formula": "首段回答到达时刻 − 请求发出时刻",

  "info.tree.name": "前缀树",
  "info.tree.what": "哪些提示词开头已缓存。没有分支的一段块是一条横条；高度是共享它的请求数，长度是块数。",
  "info.tree.window": "当前；被驱逐的段会逐渐淡出。",
  "info.tree.source": "KV 事件：每个块都指明其父块。请求与块按块表对应。",
  "info.tree.formula": "共享一段的请求数 = 块表含有这些块的不同请求数",

  "info.cache.name": "缓存图中的格子",
  "info.cache.what": "每格是服务器持有的一个块。图例中的数字是块数，内容相同的副本也计入。",
  "info.cache.window": "当前。",
  "info.cache.source": "KV 事件。事件不含物理块号，所以格子的位置表示它属于哪条链，而不是它在显存中的位置。",
  "info.cache.formula": "使用中 + 空闲（4 个以上、2–3 个、1 个共享）+ 其余 = 块池大小 − 1",

  "info.chart-ttft.name": "首 token 时延",
  "info.chart-ttft.what": "每个点是一个请求。按请求：以发送顺序排列。按计算的 token 数：对应未命中缓存的提示词 token，时间就花在这里。",
  "info.chart-ttft.window": "本页保留的最近 200 个已完成请求。",
  "info.chart-ttft.source": "时延取本仪表盘时钟；token 数取响应的 usage。",
  "info.chart-ttft.formula": "计算的 token 数 = 提示词 token 数 − 缓存的 token 数",

  "info.chart-rate.name": "命中率走势",
  "info.chart-rate.what": "每个时刻之前一分钟的命中率。该分钟内没有查找时留空，而不是零。",
  "info.chart-rate.window": "每点一分钟，共最近 15 分钟。",
  "info.chart-rate.source": "服务器的计数器，随指标页的读取频率更新。",
  "info.chart-rate.formula": "该分钟命中的 token 数 ÷ 该分钟查找的 token 数",

  "info.chart-tokens.name": "各请求的提示词 token",
  "info.chart-tokens.what": "每根柱子是一个提示词：复用的部分与计算的部分。",
  "info.chart-tokens.window": "本页保留的最近 40 个请求。",
  "info.chart-tokens.source": "响应的 usage；服务器没有给出时取自 KV 事件。",
  "info.chart-tokens.formula": "计算 = 提示词 token 数 − 缓存的 token 数",
};
