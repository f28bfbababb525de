"""Texts that experiments send as chats. Words only."""

from typing import Final

FIVE_RULES: Final = (
    "规则一：回答必须准确、简洁，先给结论再讲理由。\n"
    "规则二：涉及人物时写明朝代和生卒年份。\n"
    "规则三：涉及地点时同时写出古名与今名。\n"
    "规则四：区分正史记载与民间传说，并注明所引史书的名称。\n"
    "规则五：不确定的内容要直接说明不确定。\n"
)
"""74 tokens in Qwen2.5's vocabulary: 20 times over and in its template, 1,488 tokens stand before the question."""

EIGHT_QUESTIONS: Final = (
    "王安石变法的主要内容和结果是什么？",
    "科举制度始于哪个朝代？",
    "郑和下西洋共几次？",
    "安史之乱何时开始？",
    "赤壁之战谁赢了？",
    "秦始皇在哪一年统一六国？",
    "谁发明了造纸术？",
    "明朝的开国皇帝是谁？",
)
"""With the rules: prompts of 1504 1501 1500 1500 1500 1502 1499 1500 tokens."""

WARM_UP_QUESTION: Final = "你好。"

HANDBOOK: Final = (
    "The Larkspur Ferry Handbook, part {part}. Ferries leave the north pier at six, nine and half past twelve, and the "
    "south pier an hour later. A ticket holds for one crossing on the day that it names; a return ticket for seven "
    "days. Dogs travel free on the open deck and pay half inside. Bicycles need a tag, which the purser hands out. In "
    "wind of force eight or more the small boat stays in port, and its passengers are taken by the large one. Whoever "
    "misses the last ferry may sleep in the waiting room, which is heated until seven. Lost things are kept for ninety "
    "days at the office on the north pier, and then sold for the lifeboat. "
)
HANDBOOK_QUESTIONS: Final = (
    "When does the first ferry leave the north pier?",
    "How long does a return ticket hold?",
    "What does a dog pay inside?",
    "Who hands out the tags for bicycles?",
    "What happens in wind of force eight?",
    "Where can a passenger sleep who missed the last ferry?",
    "How long are lost things kept?",
    "What becomes of lost things after that?",
)

EXAMPLES: Final = (
    ("The parcel came a day early and in one piece.", "praise"),
    ("I have waited two weeks and nobody answers.", "complaint"),
    ("Do you deliver to islands?", "question"),
    ("Please change my address to Mill Lane 4.", "request"),
    ("The box was wet and the book inside is ruined.", "complaint"),
    ("Your driver was so kind to my grandmother.", "praise"),
    ("What does a parcel of ten kilos cost?", "question"),
    ("Cancel the order that I made this morning.", "request"),
    ("The tracking page shows nothing since Monday.", "complaint"),
    ("Thank you for the quick refund!", "praise"),
    ("Can I pay when the parcel arrives?", "question"),
    ("Send me the invoice once more.", "request"),
)
NEW_ITEMS: Final = (
    "My parcel has a hole in it.",
    "Is the shop open on Sunday?",
    "Wonderful service, as always.",
    "Leave it with the neighbour, please.",
    "Why was I charged twice?",
    "How heavy may a parcel be?",
    "The new boxes are great.",
    "Hold my mail for a week.",
)
CLASSIFY: Final = "Label each message as praise, complaint, question or request. Answer with the label alone."

TALK: Final = (
    "I want to plant a small garden. What should I think of first?",
    "The ground is heavy clay. Does that change what you said?",
    "Which three vegetables forgive a beginner most?",
    "When would I sow each of them?",
    "How often do they need water in a dry summer?",
    "Something eats the leaves at night. What could it be?",
    "What can I do about it without poison?",
    "Sum up your advice in one line.",
)
TALK_SYSTEM: Final = (
    "You are a patient gardener who answers in two or three plain sentences. Name plants by their common names. Give "
    "lengths in centimetres and times in weeks. Where the weather or the region decides, say so. Never recommend a "
    "product by its brand. Where a question is unclear, make the likeliest guess and say which it was."
)

TOOLS: Final = tuple(
    {
        "type": "function",
        "function": {
            "name": name,
            "description": text,
            "parameters": {
                "type": "object",
                "properties": {"number": {"type": "string", "description": "the parcel number"}},
                "required": ["number"],
            },
        },
    }
    for name, text in (
        ("find_parcel", "Says where a parcel is now."),
        ("cancel_parcel", "Takes a parcel back before it has left the depot."),
        ("refund_postage", "Pays the postage of a lost parcel back."),
        ("call_customer", "Asks a colleague to call the customer on the same day."),
    )
)
SUPPORT: Final = (
    "You answer customers of Larkspur Parcels. Greet the customer by name where you know it. Ask for the parcel number "
    "before you look anything up: two letters and nine digits. Parcels within the country arrive after one to three "
    "working days, abroad after four to nine. A parcel that has not moved for five working days counts as lost: offer "
    "a search and a refund of the postage. Damaged goods need two photographs. Claims are open for thirty days. Never "
    "promise a date that the tracking does not show, never ask for a card number, a password or a birthday. "
)
