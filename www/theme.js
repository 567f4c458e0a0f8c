// Before anything is painted, so that a dark page never flashes white.
{
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null;
    }
  };
  const apply = () => {
    document.documentElement.dataset.theme = stored() ?? (dark.matches ? "dark" : "light");
    dispatchEvent(new Event("theme"));
  };
  dark.addEventListener("change", apply);
  addEventListener("storage", apply);
  apply();
}
