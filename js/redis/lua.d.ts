/** A script of Redis. */
declare module "*.lua" {
  export const script: string;
  /** The SHA-1 of the script, by which Redis knows it. */
  export const scriptSha: string;
}
