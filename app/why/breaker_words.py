"""What each breaker is called, and what to do about it, in English and Simplified Chinese. Imports only its package."""

from typing import NamedTuple

from .span_names import BreakerKind


class BreakerWords(NamedTuple):
    """A name and an advice, in both languages."""

    name: str
    advice: str
    name_zh: str
    advice_zh: str


_LAST = "Put it behind the part that stays, for example at the end of the last user message."
_LAST_ZH = "请把它放到不变的部分之后，例如最后一条用户消息的末尾。"
_ORDER = "Always send them in the same order."
_ORDER_ZH = "请始终以相同的顺序发送。"

BREAKER_WORDS: dict[BreakerKind, BreakerWords] = {
    "clock_time": BreakerWords("A clock time", _LAST, "时刻", _LAST_ZH),
    "date": BreakerWords(
        "A date", f"{_LAST} A date alone costs one miss a day.", "日期", f"{_LAST_ZH}单独的日期每天只损失一次。"
    ),
    "timestamp": BreakerWords("A timestamp", _LAST, "时间戳", _LAST_ZH),
    "uuid": BreakerWords("A UUID", _LAST, "UUID", _LAST_ZH),
    "random_id": BreakerWords("A random id", _LAST, "随机标识", _LAST_ZH),
    "request_id": BreakerWords(
        "A request id",
        "Leave it out of the prompt: send it as a header.",
        "请求标识",
        "不要放进提示词：请用请求头发送。",
    ),
    "session_id": BreakerWords(
        "A session id",
        "Leave it out of the prompt: send it as a header.",
        "会话标识",
        "不要放进提示词：请用请求头发送。",
    ),
    "counter": BreakerWords("A counter", _LAST, "计数器", _LAST_ZH),
    "user_name": BreakerWords("A user's name before the constant part", _LAST, "不变部分之前的用户名", _LAST_ZH),
    "shuffled_examples": BreakerWords("Examples in another order", _ORDER, "示例顺序不同", _ORDER_ZH),
    "reordered_tools": BreakerWords("Tools in another order", _ORDER, "工具顺序不同", _ORDER_ZH),
    "reordered_keys": BreakerWords(
        "JSON keys in another order", "Write JSON with sorted keys.", "JSON 键顺序不同", "请以排序的键写 JSON。"
    ),
    "trailing_space": BreakerWords(
        "Trailing white space", "Trim texts before sending.", "行尾空白", "发送前请去掉末尾空白。"
    ),
    "unicode_form": BreakerWords(
        "Another Unicode form of the same text",
        "Normalise texts to NFC.",
        "同一文本的另一种 Unicode 形式",
        "请把文本规范化为 NFC。",
    ),
    "line_endings": BreakerWords("Other line endings", "Send line feeds only.", "换行符不同", "请只用换行符 LF。"),
    "client_line": BreakerWords(
        "A client's billing or version line",
        "Turn it off in the client, or have a proxy remove it.",
        "客户端的计费或版本行",
        "请在客户端关闭，或让代理去掉它。",
    ),
    "dropped_thinking": BreakerWords(
        "Thinking that is dropped from the history",
        "Send the history as the model wrote it, or never with its thoughts.",
        "历史中丢失的思考内容",
        "请按模型原样发送历史，或始终不带思考内容。",
    ),
    "template_date": BreakerWords(
        "A date that the chat template writes",
        "Pass a fixed date to the template (chat_template_kwargs), or use a template without one.",
        "聊天模板写入的日期",
        "请通过 chat_template_kwargs 传入固定日期，或使用不写日期的模板。",
    ),
    "changing_text": BreakerWords(
        "Text that changes before the constant part", _LAST, "不变部分之前会变的文本", _LAST_ZH
    ),
}
