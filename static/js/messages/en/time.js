/** The timeline, what replays, and redacted mode. */

export default {
  "time.title": "Timeline",
  "time.live": "live",
  "time.replay": "replay, {time}",
  "time.value": { one: "{time}, {n} second before now", other: "{time}, {n} seconds before now" },
  "time.said-replay": "The page shows the past. Press v to come back to what happens now.",
  "time.said-live": "The page shows what happens now.",
  "time.pause": "pause",
  "time.play": "play",
  "time.slow": "slow motion",
  "time.slower": "slower",
  "time.faster": "faster",
  "time.speed": "{speed}×",
  "time.to-live": "Back to live",
  "time.track": "Moment that the page shows",
  "time.track-title": "Last 15 minutes: {requests}, {rate} of their prompt tokens reused, {evicted} evicted. Drag, or use arrow keys.",
  "time.requests": "requests",
  "time.rate": "hit rate",
  "time.evicted": "evictions",

  "redact.switch": "Hide all text",
  "redact.off": "Hide the text of prompts and answers; shapes and lengths stay",
  "redact.on": "Text of prompts and answers is hidden; show it again",
  "redact.always": "This dashboard shows no text (setting redact)",
  "keys.redact": "hide or show the text of prompts and answers",

  "keys.time": "go to the timeline; arrows there move a second, Page Up and Page Down a quarter of a minute",
  "keys.pause": "pause the page, or play it on",
  "keys.slower": "slow motion, then slower",
  "keys.faster": "faster",
  "keys.live": "come back from the past to what happens now",

  "info.timeline.name": "The timeline",
  "info.timeline.what":
    "What this page received, kept so that any moment can be shown again: the whole page then shows that moment. Bars: requests begun. Blue: share of prompt tokens reused. Red: blocks evicted.",
  "info.timeline.window": "the last 15 minutes, since this page was opened; bars of 5 seconds; less where much more happens than the page keeps",
  "info.timeline.source": "the events that the page received, in their order, by the dashboard's clock; hit rate from each response's usage",
  "info.timeline.formula": "state at a moment = a kept state before it + every event up to it; texts of blocks are asked for now",
};
