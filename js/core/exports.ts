/** What Rust exports: `src/js.rs` says what each does. Only numbers cross; 1 and 0 are true and false. */
export interface Exports {
  readonly memory: WebAssembly.Memory;
  area(): number;
  numbers(count: number): number;
  policies(): number;
  drop_policies(policies: number): void;
  slab(
    policies: number,
    reports: number,
    stored: number,
    maxKeys: number,
    denies: number,
    cleanPeriod: number,
    keyOlderThan: number,
  ): number;
  drop_slab(slab: number): void;
  hit(slab: number, slot: number, cost: number, now: number): number;
  hit_with(slab: number, slot: number, cost: number, now: number, call: number, takes: number): number;
  inc(slab: number, slot: number, cost: number, now: number, position: number): number;
  set(slab: number, slot: number, count: number, now: number, position: number): number;
  get(slab: number, slot: number, now: number, position: number, expiry: number): number;
  release(slab: number, slot: number): void;
  clean(slab: number, now: number): number;
  take_freed(slab: number): void;
  evicted(slab: number): number;
  save(slab: number, slot: number, now: number): void;
  load(slab: number, slot: number, now: number, puts: number): number;
}
