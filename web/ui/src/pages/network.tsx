import type { JSX } from "preact";

/** One subnet. */
export default function Network(): JSX.Element {
  return <h1>Network</h1>;
}
