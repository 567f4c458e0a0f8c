/** A style sheet as text. */
declare module "*.css" {
  const text: string;
  export default text;
}

/** The files in `template/` by their names; the bundler reads them. */
declare module "tollgate:template" {
  const files: Readonly<Record<string, string>>;
  export default files;
}
