// The images of the catalogue as they are now: read once, and again when an event says
// that one changed; while one moves, its progress is asked for every second.
import { useEffect, useRef, useState } from "preact/hooks";
import { computed } from "@preact/signals";
import type { ApiImage, ImageList, ImageState, Problem } from "./api/types.ts";
import { call } from "./api/call.ts";
import { listen } from "./api/stream.ts";
import { rows } from "./machines.ts";
import { Speed } from "./speed.ts";
import { useLoad } from "./ui/basic.tsx";
import { finished } from "./uploads.ts";

/** Where an image is: direct ones are never fetched, so they are always there. */
export const stateOf = (i: ApiImage): ImageState | "direct" => (i.spec.direct ? "direct" : (i.progress?.state ?? i.status?.state ?? "waiting"));

/** Whether something happens to it by itself. */
export const moves = (i: ApiImage): boolean => ["waiting", "fetching", "converting"].includes(stateOf(i));

/** Whether machines can be given it now; one that is fetched anew can be while it is. */
export const usable = (i: ApiImage): boolean => !!i.spec.direct || (i.status?.renditions?.length ?? 0) > 0;

/** Who has an image, or gets it. */
export interface Users {
  installed: string[];
  installing: string[];
}

/** The users of all images, by the image's name. */
export const usersOf = computed(() => {
  const out = new Map<string, Users>();
  for (const r of rows.value) {
    if (!r.image || !(r.active || r.installed)) continue;
    const u = out.get(r.image) ?? { installed: [], installing: [] };
    (r.active ? u.installing : u.installed).push(r.name);
    out.set(r.image, u);
  }
  return out;
});

/** All images, and how fast those that move do. */
export function useImages(): { images: ApiImage[] | undefined; problem: Problem | undefined; reload: () => void; rateOf: (i: ApiImage) => number } {
  const [turn, setTurn] = useState(0);
  const speeds = useRef(new Map<string, { state: string; done: number; speed: Speed; rate: number }>());
  const load = useLoad((signal) => call<ImageList>("GET", "/images", { query: { sort: "name" }, signal }), [turn, finished.value]);
  const again = () => setTurn((n) => n + 1);
  const images = load.data?.items as ApiImage[] | undefined;
  const moving = images?.some(moves) ?? false;
  useEffect(() => {
    let timer = 0;
    const soon = () => {
      clearTimeout(timer);
      timer = window.setTimeout(again, 200);
    };
    const off = listen({ event: (e) => (/^image-/.test(e.reason) || (e.reason === "api-change" && e.detail?.includes("/images")) ? soon() : undefined), relist: soon });
    return () => {
      off();
      clearTimeout(timer);
    };
  }, []);
  useEffect(() => {
    if (!moving) return;
    const timer = window.setInterval(() => {
      if (!document.hidden) again();
    }, 1000);
    return () => clearInterval(timer);
  }, [moving]);
  const rateOf = (i: ApiImage): number => {
    const p = i.progress;
    if (!p) return 0;
    let s = speeds.current.get(i.metadata.name);
    if (!s || s.state !== p.state) speeds.current.set(i.metadata.name, (s = { state: p.state, done: -1, speed: new Speed(), rate: 0 }));
    if (s.done !== p.done) {
      s.done = p.done;
      s.rate = s.speed.take(p.done, performance.now());
    }
    return s.rate;
  };
  return { images, problem: load.problem, reload: again, rateOf };
}
