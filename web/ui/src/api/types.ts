// The shapes of the API, as its own document has them; build deps makes schema.d.ts.
export type * from "./schema.d.ts";
