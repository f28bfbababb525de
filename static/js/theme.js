/* Runs before the first paint, so that the page never flashes in the other theme: the only script that isn't a module. */
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const stored = (name) => {
    try {
      return localStorage.getItem(`prefixscope-${name}`);
    } catch {
      return null; /* Storage may be forbidden; the system's preference then decides. */
    }
  };
  const apply = () => {
    const chosen = stored("theme");
    document.documentElement.dataset.theme = chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
  };
  apply();
  document.documentElement.toggleAttribute("data-projector", stored("projector") === "on");
  dark.addEventListener("change", apply);
})();
