/** Says which fields of an object's spec no version of the API has that we know: they have no effect, or are refused. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { GoType } from "../../go/types/go-type.ts";
import { newSources, type UnknownField, unknownFields } from "../../go/types/unknown-fields.ts";
import type { Admission } from "./admission.ts";

const MOST = 20;
/** of a field's path: somebody may write a name of a megabyte */
const MOST_LETTERS = 200;

/** One sentence for each field, at most twenty and one for the others. `kinds`: such as SidecarSets. */
export function droppedFields(kinds: string, type: GoType, object: object): readonly string[] {
  const { fields, count } = unknownFields(type, specOf(object), MOST);
  const texts = fields.map((one) => sentence(kinds, one));
  const more = count - texts.length;
  return more > 0
    ? [...texts, `${kinds} do not have ${more} other fields of it either; none of them has an effect`]
    : texts;
}

function sentence(kinds: string, { field, meant, sourceOf }: UnknownField): string {
  const hint = meant === undefined ? "" : `, did you mean ${meant}`;
  const effect =
    sourceOf === undefined ? "it has no effect" : `without it the volume ${shown(sourceOf)} would be an emptyDir`;
  return `${kinds} have no field ${shown(field)}${hint}; ${effect}`;
}

const shown = (text: string) => (text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS)}…` : text);

/** The same, as a part of an admission. */
export function warningsOfDropped(...[kinds, type, object]: Parameters<typeof droppedFields>): {
  readonly warnings?: readonly string[];
} {
  const warnings = droppedFields(kinds, type, object);
  return warnings.length === 0 ? {} : { warnings };
}

/**
 * Refuses volumes whose source is unknown: to API servers they are empty directories. A source that the old object has
 * is kept, so that other fields can be changed.
 */
export function denyUnknownSources(
  kinds: string,
  type: GoType,
  { operation, object, oldObject }: AdmissionRequest,
): Admission | undefined {
  const older = operation === "UPDATE" ? (oldObject ?? object) : undefined;
  const texts = newSources(type, specOf(object), specOf(older), MOST).map((one) => sentence(kinds, one));
  if (texts.length === 0) return undefined;
  return { kind: "denied", code: 422, reason: "Invalid", message: texts.join(". ") };
}

function specOf(object: object | null | undefined) {
  return { spec: (object as { readonly spec?: unknown } | null | undefined)?.spec };
}
