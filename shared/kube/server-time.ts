/** What an API server's clock shows, by what it says of its answers, in whole seconds. */
export class ServerTime {
  #aheadMs: number | undefined;

  see(date = ""): void {
    const ms = Date.parse(date);
    if (ms > 0) this.#aheadMs = ms - performance.now();
  }

  get epochMs(): number | undefined {
    return this.#aheadMs === undefined ? undefined : this.#aheadMs + performance.now();
  }
}
