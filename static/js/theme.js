/* Runs before the first paint, so that the page never flashes in the other theme: the only script that isn't a module. */
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    try {
      return localStorage.getItem("prefixscope-theme");
    } catch {
      return null; /* Storage may be forbidden; the system's preference then decides. */
    }
  };
  const apply = () => {
    const chosen = stored();
    document.documentElement.dataset.theme = chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
  };
  apply();
  dark.addEventListener("change", apply);
})();
