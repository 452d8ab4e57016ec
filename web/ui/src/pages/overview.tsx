import type { JSX } from "preact";

/** What goes on in the rack. */
export default function Overview(): JSX.Element {
  return <h1>Overview</h1>;
}
