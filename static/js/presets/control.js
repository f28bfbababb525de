/** The control: prompts of some length that begin differently, so that none can reuse another's blocks. */

export default {
  id: "control",
  name: { en: "Control: no shared prefix", zh: "对照：没有共享前缀" },
  watch: {
    en: "No two prompts begin alike, so each is computed in full. Send the same one twice: then it is reused.",
    zh: "各个提示词的开头都不同，所以每个都要完整计算。同一个连发两次：这时才会复用。",
  },
  /** Without it the chat template's own system prompt would be shared. */
  bare: true,
  text: {
    en: {
      system: "",
      questions: [
        "Explain to a beekeeper why a hive that is fed sugar in October may still starve in February. Treat the size of the colony, the temperature inside the cluster, how far the bees can move on cold days, and what a keeper can see from outside without opening anything. Close with two things to check in autumn.",
        "Write the opening of a story in which a lighthouse keeper finds that the lamp has been lit by someone else. Keep it under a hundred words, in the past tense, without dialogue. The reader should learn the season, the weather and that the keeper is not afraid, without being told any of it.",
        "Compare three ways to keep bread for a week: in a linen bag, in a clay pot and in the freezer. Say for each what happens to the crust and to the crumb, for which kind of bread it suits, and what people usually get wrong. A small table at the end is welcome.",
        "Suppose a town closes its main street to cars on Sundays. List what the council should measure before and after, how often, and which of these numbers are easily misread. Name one measure that looks useful and isn't. Assume a budget for two counters and ten hours of work a month.",
      ],
    },
    zh: {
      system: "",
      questions: [
        "请向养蜂人说明，为什么十月喂过糖的蜂群到二月仍可能饿死。分别谈谈蜂群大小、蜂团内部的温度、寒冷天气里蜜蜂能移动多远，以及不开箱从外面能看出什么。最后给出秋季需要检查的两件事。",
        "写一个故事的开头：灯塔看守人发现灯已经被别人点亮了。不超过一百五十字，不用对话。读者应当看出季节、天气，以及看守人并不害怕，但文中不要直接说出来。",
        "比较把面包保存一周的三种办法：放在亚麻布袋里、放在陶罐里、放进冷冻室。分别说明表皮和内芯会怎样变化，适合哪种面包，人们通常哪里做得不对。最后可以附一个小表格。",
        "假设某镇每逢周日禁止汽车驶入主街。列出镇政府在实施前后应当测量什么、多久测一次，以及哪些数字容易被误读。指出一个看似有用其实无用的指标。预算是两个计数器和每月十小时的人工。",
      ],
    },
  },
};
