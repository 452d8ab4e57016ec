import type { JSX } from "preact";
import { Events } from "../ui/events.tsx";

/** All events, as they happen. */
export default function EventsPage(): JSX.Element {
  return (
    <>
      <div class="head">
        <h1>Events</h1>
        <span class="dim">What happened, to which machine, and who asked for it; the newest first.</span>
      </div>
      <Events />
    </>
  );
}
