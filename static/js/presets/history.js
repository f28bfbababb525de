/**
 * The shape of a test known from the field: a system prompt of five rules repeated twenty times (with Qwen's chat
 * template 1,488 tokens, which is 93 blocks of 16) and eight short questions under it. In Chinese, as in the field.
 */

const RULES = `1. 只依据可靠的史料回答，不确定时要直接说明。
2. 先给结论，再用一两句话讲清楚缘由。
3. 涉及年代时写出公元纪年和朝代。
4. 语言简洁平实，不用流行语。
5. 不编造人物、引文或者书名。
`;

export default {
  id: "history",
  name: { en: "Chinese history, 1,490 tokens", zh: "中国历史助手，约 1,490 个 token" },
  watch: {
    en: "Send all questions: after the first, about 93 of 94 blocks are reused, and the first token comes several times sooner.",
    zh: "发送全部问题：第一个之后，每次约 94 个块中有 93 个被复用，首 token 时延缩短到几分之一。",
  },
  text: {
    zh: {
      system: `你是一位熟悉中国历史的助手，面向普通读者。请始终遵守以下各条规则。\n${RULES.repeat(20)}`,
      questions: [
        "秦朝是哪一年统一中国的？",
        "汉武帝为什么重用儒家？",
        "唐朝的都城在哪里？",
        "宋代为何商业繁荣？",
        "郑和一共几次下西洋？",
        "科举制度始于何时？",
        "安史之乱持续了多久？",
        "清朝最后一位皇帝是谁？",
      ],
    },
  },
};
