import type { JSX } from "preact";

/** The racks as they stand. */
export default function Racks(): JSX.Element {
  return <h1>Racks</h1>;
}
