/** An agent with tools: their descriptions stand at the very front, and each step carries the whole talk so far. */

const tool = (name, description, properties) => ({
  type: "function",
  function: { name, description, parameters: { type: "object", properties, required: Object.keys(properties) } },
});
const text = (description) => ({ type: "string", description });

export default {
  id: "agent",
  name: { en: "Agent with tools", zh: "使用工具的智能体" },
  watch: {
    en: "Send all: each step repeats everything before it, answers included, so the reused part grows with every step.",
    zh: "发送全部：每一步都重复此前的全部内容，包括回答，所以复用的部分逐步增长。",
  },
  turns: true,
  tools: [
    tool("find_trains", "Connections between two stations, earliest first.", { from: text("station"), to: text("station"), after: text("time, 24 h") }),
    tool("reserve_seat", "Reserves one seat in a train. Costs nothing and ends after ten minutes.", { train: text("number of the train"), class: text("first or second") }),
    tool("weather", "Forecast for a place and a day.", { place: text("town"), day: text("date, ISO 8601") }),
    tool("send_note", "Sends a short note to the traveller's phone.", { body: text("at most 160 characters") }),
  ],
  text: {
    en: {
      system:
        "You plan journeys by train. Call a tool whenever you need a fact; never guess times or prices. Change trains at most twice, and leave twelve minutes for each change. Reserve only what the traveller has agreed to. Say in one sentence what you do next.",
      questions: [
        "I must be in Lisbon by six tomorrow evening. I start in Porto.",
        "Result of find_trains: 523, Porto 12:52, Lisbon 15:40; 125, Porto 14:45, Lisbon 17:33. Which do you advise?",
        "Take the first one, second class, at a window.",
        "Result of reserve_seat: train 523, coach 21, seat 64. Will it rain when I arrive?",
      ],
    },
    zh: {
      system:
        "你负责规划火车行程。需要事实时就调用工具，不要猜测时刻或票价。最多换乘两次，每次换乘留出十二分钟。只预订旅客同意的座位。用一句话说明你下一步做什么。",
      questions: [
        "我明天傍晚六点前要到苏州，从南京出发。",
        "find_trains 的结果：G7013，南京 12:52，苏州 14:10；G7029，南京 14:45，苏州 16:03。你建议哪一趟？",
        "就坐第一趟，二等座，靠窗。",
        "reserve_seat 的结果：G7013 次，12 车 6F。我到的时候会下雨吗？",
      ],
    },
  },
};
