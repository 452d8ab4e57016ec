import type { JSX } from "preact";

/** One machine. */
export default function Machine(): JSX.Element {
  return <h1>Machine</h1>;
}
