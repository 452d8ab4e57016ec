// The images of the catalogue as they are now; while one moves, its progress is asked for
// every second.
import { useEffect, useRef } from "preact/hooks";
import { computed } from "@preact/signals";
import type { ApiImage, ImageList, ImageState, Problem } from "./api/types.ts";
import { call } from "./api/call.ts";
import { changes, useLive } from "./live.ts";
import { rows } from "./machines.ts";
import { Speed } from "./speed.ts";
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

const imagesChange = changes("images");

/** All images, and how fast those that move do. */
export function useImages(): { images: ApiImage[] | undefined; problem: Problem | undefined; reload: () => void; rateOf: (i: ApiImage) => number } {
  const speeds = useRef(new Map<string, { state: string; done: number; speed: Speed; rate: number }>());
  const live = useLive(
    async (signal) => (await call<ImageList>("GET", "/images", { query: { sort: "name" }, signal })).items as ApiImage[],
    (e) => e.reason.startsWith("image-") || imagesChange(e),
    [],
    (all) => (all.some(moves) ? 1000 : 0), // progress is no event
  );
  useEffect(() => {
    if (finished.value > 0) live.reload();
  }, [finished.value]);
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
  return { images: live.data, problem: live.problem, reload: live.reload, rateOf };
}
