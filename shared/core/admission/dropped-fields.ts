/** Fields of an object's spec that no known version of the API has: they have no effect, or are refused. */
import type { AdmissionRequest } from "../../api/admission.ts";
import { fieldMeant, type GoType, type UnknownField, unknownFields } from "../../go/types/go-type.ts";
import { shortText } from "../../go/unseen.ts";
import type { Admission } from "./admission.ts";

const MOST = 20;
/** of a field's path: somebody may write a name of a megabyte */
const MOST_LETTERS = 200;

/** One sentence per field, at most twenty, and one for all others. `kinds`: a plural such as SidecarSets. */
export function droppedFields(kinds: string, type: GoType, object: object): readonly string[] {
  const fields = fieldsOf(type, object);
  const texts = fields.slice(0, MOST).map((one) => sentence(kinds, type, one));
  const more = fields.length - texts.length;
  return more > 0
    ? [...texts, `${kinds} do not have ${more} other fields of it either; none of them has an effect`]
    : texts;
}

function sentence(kinds: string, type: GoType, one: UnknownField): string {
  const meant = fieldMeant(type, one);
  const hint = meant === undefined ? "" : `, did you mean ${meant}`;
  const { field, sourceOf } = one;
  const effect =
    sourceOf === undefined ? "it has no effect" : `without it the volume ${shown(sourceOf)} would be an emptyDir`;
  return `${kinds} have no field ${shown(field)}${hint}; ${effect}`;
}

const shown = (text: string) => shortText(text, MOST_LETTERS);
const fieldsOf = (type: GoType, object: object | null | undefined) =>
  unknownFields(type, { spec: (object as { readonly spec?: unknown } | null | undefined)?.spec });

/** The same, as a part of an admission. */
export function warningsOfDropped(...given: Parameters<typeof droppedFields>): {
  readonly warnings?: readonly string[];
} {
  const warnings = droppedFields(...given);
  return warnings.length === 0 ? {} : { warnings };
}

/**
 * Refuses volumes with an unknown source: API servers treat them as empty directories. A source of the old object stays
 * allowed, so that other fields can change.
 */
export function denyUnknownSources(kinds: string, type: GoType, request: AdmissionRequest): Admission | undefined {
  const { operation, object, oldObject } = request;
  const older = operation === "UPDATE" ? fieldsOf(type, oldObject ?? object) : [];
  const had = new Set(older.map(({ key, sourceOf }) => `${sourceOf}/${key}`));
  const added = fieldsOf(type, object).filter(
    ({ key, sourceOf }) => sourceOf !== undefined && !had.has(`${sourceOf}/${key}`),
  );
  const message = added
    .slice(0, MOST)
    .map((one) => sentence(kinds, type, one))
    .join(". ");
  return message === "" ? undefined : { kind: "denied", code: 422, reason: "Invalid", message };
}
