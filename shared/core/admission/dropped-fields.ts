/** Says which fields of an object's spec have no effect, because no version of the API that we know has them. */
import type { GoType } from "../../go/types/go-type.ts";
import { unknownFields } from "../../go/types/unknown-fields.ts";

const MOST = 20;
/** of a field's path: somebody may write a name of a megabyte */
const MOST_LETTERS = 200;
const VOLUME = /^(.*\bvolumes\[(\d+)\])\.[^.[]+$/;

interface WithSpec {
  readonly spec?: unknown;
}

/** One sentence for each field, at most twenty and one for the others. `kinds`: such as SidecarSets. */
export function droppedFields(kinds: string, type: GoType, object: object): readonly string[] {
  const { spec } = object as WithSpec;
  const { fields, count } = unknownFields(type, { spec }, MOST);
  const texts = fields.map(({ field, meant }) => {
    const hint = meant === undefined ? "" : `, did you mean ${meant}`;
    const shown = field.length > MOST_LETTERS ? `${field.slice(0, MOST_LETTERS)}…` : field;
    return `${kinds} have no field ${shown}${hint}; ${effect(field, object, type)}`;
  });
  const more = count - texts.length;
  return more > 0
    ? [...texts, `${kinds} do not have ${more} other fields of it either; none of them has an effect`]
    : texts;
}

/** The same, as a part of an admission. */
export function warningsOfDropped(...[kinds, type, object]: Parameters<typeof droppedFields>): {
  readonly warnings?: readonly string[];
} {
  const warnings = droppedFields(kinds, type, object);
  return warnings.length === 0 ? {} : { warnings };
}

/** Defaults make an emptyDir of a volume that has no source. */
function effect(field: string, object: object, type: GoType): string {
  const [, path = ""] = VOLUME.exec(field) ?? [];
  const volume = path === "" ? undefined : valueAt(object, path);
  const isEmpty =
    volume !== undefined && Object.keys(volume).every((key) => key === "name" || isUnknown(type, path, key));
  return isEmpty ? `without it the volume ${String(volume["name"])} becomes an emptyDir` : "it has no effect";
}

type Values = Readonly<Record<string, unknown>>;

function valueAt(object: object, path: string): Values | undefined {
  const steps = path.match(/[^.[\]]+/g) ?? [];
  return steps.reduce<unknown>((value, step) => (value as Values | undefined)?.[step], object) as Values | undefined;
}

function isUnknown(type: GoType, path: string, key: string): boolean {
  const steps = path.match(/[^.[\]]+/g) ?? [];
  const found = steps.reduce<GoType | undefined>((one, step) => {
    if (one?.kind === "list") return one.of;
    return one?.kind === "struct" ? one.fields.get(step)?.type : undefined;
  }, type);
  return found?.kind === "struct" && !found.fields.has(key);
}
