// Rows by name, read in two ways at once: page after page of the whole list, and by name
// whatever an event has told of meanwhile. What was read by name is the newer one.

/** Known is what is known of things that have names. */
export class Known<R extends { name: string }> {
  readonly rows = new Map<string, R>();
  #listed = new Set<string>();
  #newer = new Set<string>();

  /** Everything is about to be read anew. */
  begin(): void {
    this.#listed.clear();
    this.#newer.clear();
  }

  /** Takes a page of the list. */
  page(items: R[]): void {
    for (const r of items) {
      this.#listed.add(r.name);
      if (!this.#newer.has(r.name)) this.rows.set(r.name, r);
    }
  }

  /** The list was read to its end: what is in it nowhere is gone, but for those that are still to be read by name. */
  whole(open: ReadonlySet<string>): void {
    for (const n of [...this.rows.keys()]) if (!this.#listed.has(n) && !this.#newer.has(n) && !open.has(n)) this.rows.delete(n);
  }

  /** Takes what was read by name; a name of which nothing came is gone. */
  read(names: string[], items: R[]): void {
    const found = new Set<string>();
    for (const r of items) {
      found.add(r.name);
      this.rows.set(r.name, r);
    }
    for (const n of names) {
      this.#newer.add(n);
      if (!found.has(n)) this.rows.delete(n);
    }
  }
}
