/** What the client accepts: plain JSON, a Table, or only the metadata. */
import { notAcceptable } from "../storage/status-error.ts";

export type View = "object" | "table" | "metadata";

interface Clause {
  readonly type: string;
  readonly parameters: Readonly<Record<string, string>>;
}

function clauseOf(text: string): Clause {
  const [type = "", ...rest] = text.split(";").map((part) => part.trim());
  const parameters = Object.fromEntries(rest.map((part) => part.split("=", 2) as [string, string]));
  return { type: type.toLowerCase(), parameters };
}

const VIEWS: Readonly<Record<string, View>> = {
  Table: "table",
  PartialObjectMetadata: "metadata",
  PartialObjectMetadataList: "metadata",
};

function viewOf(clause: Clause): View | undefined {
  if (!["application/json", "application/*", "*/*"].includes(clause.type)) return undefined;
  const as = clause.parameters["as"];
  if (as === undefined) return "object";
  const isMeta = clause.parameters["g"] === "meta.k8s.io" && clause.parameters["v"] === "v1";
  return isMeta ? VIEWS[as] : undefined;
}

export function clausesOf(accept: string): readonly Clause[] {
  return accept.trim() === "" ? [{ type: "*/*", parameters: {} }] : accept.split(",").map(clauseOf);
}

/** The first clause that can be served. Throws 406 when none can. */
export function negotiateView(accept: string): View {
  for (const clause of clausesOf(accept)) {
    const view = viewOf(clause);
    if (view !== undefined) return view;
  }
  throw notAcceptable();
}
