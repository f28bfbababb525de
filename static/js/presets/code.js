/** Completions over one open file: the file stays, the place to complete moves. */

const FILE = `"""A token bucket: lets through at most \`rate\` calls a second, with bursts of \`burst\`."""

from collections.abc import Callable


class Bucket:
    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError("rate must be above 0 and burst at least 1")
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._filled_at = clock()

    def _fill(self) -> None:
        now = self._clock()
        grown = (now - self._filled_at) * self._rate
        self._tokens = min(self._burst, self._tokens + grown)
        self._filled_at = now

    def take(self, n: int = 1) -> bool:
        self._fill()
        if self._tokens < n:
            return False
        self._tokens -= n
        return True

    def wait_s(self, n: int = 1) -> float:
        self._fill()
        missing = max(0.0, n - self._tokens)
        return missing / self._rate
`;

export default {
  id: "code",
  name: { en: "Code completion over one file", zh: "单文件代码补全" },
  watch: {
    en: "The file comes first and the cursor last, so every completion reuses the file. Change the file's first letter: everything is computed again.",
    zh: "文件在前、光标位置在后，每次补全都复用整个文件。改动文件的第一个字母：全部重新计算。",
  },
  text: {
    en: {
      system: `Complete Python code. Answer with the new lines alone. The open file is bucket.py:\n\n${FILE}`,
      questions: [
        "Complete after line 27: def refund(self, n: int) -> None:",
        "Complete after line 32: def __repr__(self) -> str:",
        "Complete at the end: def test_a_burst_passes_then_waits() -> None:",
        "Complete after line 14: def level(self) -> float:",
      ],
    },
    zh: {
      system: `补全 Python 代码，只回答新增的行。当前打开的文件是 bucket.py：\n\n${FILE}`,
      questions: [
        "在第 27 行之后补全：def refund(self, n: int) -> None:",
        "在第 32 行之后补全：def __repr__(self) -> str:",
        "在文件末尾补全：def test_a_burst_passes_then_waits() -> None:",
        "在第 14 行之后补全：def level(self) -> float:",
      ],
    },
  },
};
