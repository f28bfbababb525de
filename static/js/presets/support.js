/** A system prompt with many short questions under it: the everyday case. */

export default {
  id: "support",
  name: { en: "Support bot", zh: "客服助手" },
  watch: {
    en: "Send it twice: the second time its blocks are cached. Other questions reuse all but their own end.",
    zh: "连发两次：第二次时它的块已在缓存中。换一个问题，只有结尾需要计算。",
  },
  text: {
    en: {
      system: `You are the support assistant of Northwind Parcel, a delivery company.
Follow these rules in every answer:
1. Be accurate. If you are not sure, say so and offer to ask a colleague.
2. Answer in the language that the customer writes in.
3. Never promise a delivery date; name the last scan and the usual time instead.
4. Quote the tracking number back, so that the customer can check it.
5. Refunds above 50 euros go to a person; explain how long that takes.
6. Never ask for card numbers, passwords or copies of documents.
7. Keep it under four sentences, without exclamation marks.
Opening hours of the depots: Monday to Friday 8 to 18, Saturday 9 to 13, closed on Sundays and public holidays.
A parcel is kept at the depot for seven working days, then it goes back to its sender.`,
      questions: [
        "Where is my parcel NW-4711?",
        "How do I return a damaged lamp?",
        "Are you open on Saturday afternoon?",
        "Can you leave it with my neighbour?",
        "Why was my refund only 20 euros?",
        "I moved last week. What now?",
      ],
    },
    zh: {
      system: `你是“北风快递”的客服助手。
每次回答都请遵守以下规则：
1. 内容准确；不确定时直接说明，并表示可以请同事核实。
2. 使用客户所用的语言回答。
3. 不承诺送达日期；说明最近一次扫描的地点以及通常所需的时间。
4. 复述运单号，便于客户核对。
5. 超过五百元的退款由人工处理，并说明需要多久。
6. 绝不索要银行卡号、密码或证件照片。
7. 不超过四句话，不使用感叹号。
网点营业时间：周一至周五 8 点到 18 点，周六 9 点到 13 点，周日和法定节假日休息。
包裹在网点保留七个工作日，之后退回寄件人。`,
      questions: ["我的包裹 NW-4711 到哪里了？", "台灯摔坏了，怎么退货？", "周六下午营业吗？", "可以放在邻居家吗？", "为什么只退了我二十元？", "我上周搬家了，怎么办？"],
    },
  },
};
