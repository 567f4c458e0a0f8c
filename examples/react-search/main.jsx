import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Search } from "./search.jsx";

createRoot(document.querySelector("#root")).render(
  <StrictMode>
    <Search />
  </StrictMode>,
);
