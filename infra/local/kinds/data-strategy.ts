/** ConfigMaps, Secrets and ControllerRevisions: kinds that only hold data, some of it for good. */

import { asObject, isEqual, textMap } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import { type FieldError, forbiddenField, invalid, required } from "./field-error.ts";

const FIXED = "field is immutable when `immutable` is set";

function dataErrors(next: ApiObject, previous: ApiObject): readonly FieldError[] {
  if (previous["immutable"] !== true) return [];
  const fields = ["data", "binaryData"].filter((field) => !isEqual(next[field] ?? {}, previous[field] ?? {}));
  const flag = next["immutable"] === true ? [] : ["immutable"];
  return [...flag, ...fields].map((field) => forbiddenField(field, FIXED));
}

function keyErrors(object: ApiObject): readonly FieldError[] {
  const why =
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
  return Object.keys(asObject(object["data"])).flatMap((key) =>
    /^[-._a-zA-Z0-9]+$/.test(key) ? [] : [invalid(`data[${key}]`, key, why)],
  );
}

export const CONFIG_STRATEGY = { validate: keyErrors, validateUpdate: dataErrors };

export const SECRET_STRATEGY = {
  default(secret: ApiObject): void {
    const plain = Object.entries(textMap(secret["stringData"])).map(([key, text]) => {
      return [key, Buffer.from(text).toString("base64")] as const;
    });
    delete secret["stringData"];
    if (plain.length > 0) secret["data"] = { ...asObject(secret["data"]), ...Object.fromEntries(plain) };
    if (secret["type"] === undefined) secret["type"] = "Opaque";
  },
  validate: keyErrors,
  validateUpdate: dataErrors,
};

export const REVISION_STRATEGY = {
  default(revision: ApiObject): void {
    if (revision["revision"] === undefined) revision["revision"] = 0;
  },
  validate(revision: ApiObject): readonly FieldError[] {
    const number = Number(revision["revision"]);
    const low = "must be greater than or equal to 0";
    return [
      ...(revision["data"] === undefined ? [required("data", "data is mandatory")] : []),
      ...(number < 0 ? [invalid("revision", number, low)] : []),
    ];
  },
  validateUpdate: (next: ApiObject, previous: ApiObject): readonly FieldError[] =>
    isEqual(next["data"], previous["data"]) ? [] : [invalid("data", next["data"], "field is immutable")],
};
