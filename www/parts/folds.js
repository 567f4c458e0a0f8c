/** Opens the sections that fold on a large screen, and closes them on a small one, until the visitor does otherwise. */
export function foldSections() {
  const isWide = matchMedia("(min-width: 60rem)");
  const fold = () => {
    for (const section of document.querySelectorAll("details.fold")) section.open = isWide.matches;
  };
  isWide.addEventListener("change", fold);
  fold();
}
