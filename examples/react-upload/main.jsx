import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Uploads } from "./uploads.jsx";

createRoot(document.querySelector("#root")).render(
  <StrictMode>
    <Uploads />
  </StrictMode>,
);
