import type { JSX } from "preact";

/** What can be installed. */
export default function Images(): JSX.Element {
  return <h1>Images</h1>;
}
