/** Few-shot classification: the same worked examples before each text. */

export default {
  id: "few-shot",
  name: { en: "Few-shot classifier", zh: "少样本分类" },
  watch: {
    en: "The examples are the shared part. Swap two of them, and from the block of the first one swapped on nothing is reused.",
    zh: "示例是共享的部分。交换其中两个，从第一个被交换的示例所在的块起，就都不能复用了。",
  },
  text: {
    en: {
      system: `Sort messages to a city office. Answer with one word: road, waste, light, noise or other.

Message: A slab in front of number 14 has come loose and rocks. Answer: road
Message: The paper bins in Mill Lane were left full again. Answer: waste
Message: Three lamps in a row are dark along the canal. Answer: light
Message: The fans on the roof of the market hum all night. Answer: noise
Message: When can I collect my new passport? Answer: other
Message: The rain has washed the gravel off the path to the school. Answer: road
Message: Someone has left two mattresses beside the bottle bank. Answer: waste
Message: The lamp outside our window flickers every few seconds. Answer: light
Message: They begin to drill at five in the morning. Answer: noise
Message: Is the pool open on the holiday? Answer: other`,
      questions: [
        "Message: There is a hole in the cycle lane under the bridge. Answer:",
        "Message: The loudspeakers in the park go on until two. Answer:",
        "Message: Our green bin has lost its lid. Answer:",
        "Message: The crossing at the station isn't lit. Answer:",
        "Message: How do I register my dog? Answer:",
      ],
    },
    zh: {
      system: `给市政热线的来信分类。只回答一个词：道路、垃圾、照明、噪声或其他。

来信：14 号门前有块石板松动，踩上去会晃。回答：道路
来信：磨坊巷的废纸桶又没有清空。回答：垃圾
来信：运河边连续三盏路灯不亮。回答：照明
来信：菜市场屋顶的风机整夜轰鸣。回答：噪声
来信：新护照什么时候可以领取？回答：其他
来信：雨水把通往学校的小路上的碎石冲走了。回答：道路
来信：有人在玻璃回收箱旁丢了两张床垫。回答：垃圾
来信：我家窗外的路灯每隔几秒闪一下。回答：照明
来信：他们早上五点就开始钻孔。回答：噪声
来信：节假日游泳馆开放吗？回答：其他`,
      questions: ["来信：桥下的自行车道上有个坑。回答：", "来信：公园的音响一直响到凌晨两点。回答：", "来信：我们的厨余桶盖子不见了。回答：", "来信：火车站前的人行横道没有灯。回答：", "来信：怎么给狗办登记？回答："],
    },
  },
};
