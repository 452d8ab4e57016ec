import type { JSX } from "preact";

/** What workflows are made from. */
export default function Templates(): JSX.Element {
  return <h1>Templates</h1>;
}
