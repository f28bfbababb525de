/** Retrieval: one long document in front, short questions about it. */

export default {
  id: "document",
  name: { en: "Questions on one document (RAG)", zh: "对同一文档提问（RAG）" },
  watch: {
    en: "The document stands before the question, so it is computed once. Asked the other way round, no question could reuse it.",
    zh: "文档放在问题之前，所以只需计算一次。若把问题放在前面，每个问题都要重算整个文档。",
  },
  text: {
    en: {
      system: `Answer from the document alone. If it doesn't say, answer "not stated".

Document: Operating guide of the tidal gate at Harrow Inlet, issue 7
The gate protects the inner harbour against tides above 2.4 metres. It is a steel leaf of 18 by 6 metres on a horizontal axis; closed, it stands upright in the channel, open, it lies in a recess of the sill. Two hydraulic cylinders move it. Each can move it alone, at half the speed.
Forecast: the tide office sends a forecast every six hours. Above 2.2 metres the shift leader is called in; above 2.4 metres the gate is closed, at the latest ninety minutes before high water. A forecast that is older than seven hours counts as missing, and then the gauge at the pier decides.
Closing: ships are warned over channel 12 sixty and thirty minutes before. The signal mast shows two red lights one above the other. The leaf rises in eleven minutes with both cylinders. It is locked by four bolts; with three the gate may stay closed, with two it must be opened at the next low water.
Opening: only when the water inside stands no more than ten centimetres above the water outside. The bolts are drawn from the middle outwards. If a bolt jams, the leaf isn't moved, and the diver on call is alerted.
Inspection: seals every three months, hydraulic oil every year, the axis bearings every five years. A closing test is made each September, in daylight, at low water, with a pilot boat standing by.
Power failure: the generator starts within twelve seconds and carries one cylinder. If it doesn't start, the hand pump closes the gate in about three hours; four people take turns.`,
      questions: [
        "How long does the leaf take to rise with both cylinders?",
        "When does a forecast count as missing?",
        "What happens if only two bolts hold?",
        "How is the gate closed without any power?",
        "Who paid for the gate?",
      ],
    },
    zh: {
      system: `只根据文档回答。文档没有说明的，回答“未说明”。

文档：哈罗湾挡潮闸运行手册，第七版
挡潮闸用于抵御高于 2.4 米的潮水，保护内港。闸门是一块长 18 米、高 6 米的钢制门叶，绕水平轴转动；关闭时直立于航道中，开启时卧在底槛的凹槽里。两支液压缸驱动闸门，任何一支都能单独驱动，但速度减半。
预报：潮位站每六小时发布一次预报。预报高于 2.2 米时通知值班长到岗；高于 2.4 米时关闭闸门，最迟在高潮前九十分钟。超过七小时的预报视为缺失，此时以码头水尺为准。
关闭：提前六十分钟和三十分钟在 12 频道通知船舶。信号杆上下各亮一盏红灯。两支液压缸同时工作，门叶十一分钟升起。闸门由四根锁销锁定；剩三根时可以保持关闭，剩两根时必须在下一次低潮打开。
开启：仅当内侧水位高出外侧不超过十厘米时进行。锁销由中间向两侧依次抽出。若有锁销卡住，不得移动门叶，并通知值班潜水员。
检查：密封每三个月一次，液压油每年一次，轴承每五年一次。每年九月在白天低潮时进行一次关闭试验，引航艇在旁待命。
断电：发电机在十二秒内启动，可带动一支液压缸。若未能启动，用手动泵约三小时关闭闸门，由四人轮流操作。`,
      questions: ["两支液压缸同时工作时，门叶多久升起？", "什么情况下预报视为缺失？", "只剩两根锁销时怎么办？", "完全没有电时如何关闭闸门？", "这座闸门由谁出资建造？"],
    },
  },
};
