/**
 * Decides whether something that claims to be a pod can be read as one, as far as it is read here. Every pod is looked
 * at, next to none has a problem, so this says what is surely a pod, and leaves the others to decode-pod.ts. It is the
 * same table as there, field by field: V8 finds a field that is named in the code several times faster than one that is
 * named in a table.
 */
import { isRawNumber } from "../../go/json/json-number.ts";
import { isJsonObject, type JsonObject } from "../../go/json/json-object.ts";
import { decodingProblem } from "./decode-pod.ts";

/** What nearly every quantity looks like; these decode. */
const PLAIN_QUANTITY = /^\d{1,9}(?:\.\d{1,3})?(?:m|k|Ki|[MGTPE]i?)?$/;

type Check = (object: JsonObject) => boolean;

function isGiven(raw: unknown): boolean {
  return raw !== undefined && raw !== null;
}

function isText(raw: unknown): boolean {
  return typeof raw === "string" || !isGiven(raw);
}

function isObject(raw: unknown, fits: Check): boolean {
  return isJsonObject(raw) ? fits(raw) : !isGiven(raw);
}

function isList(raw: unknown, fits: Check): boolean {
  if (!Array.isArray(raw)) return !isGiven(raw);
  for (const item of raw) if (!isJsonObject(item) || !fits(item)) return false;
  return true;
}

function isTexts(texts: JsonObject): boolean {
  for (const key in texts) if (!isText(texts[key])) return false;
  return !isRawNumber(texts);
}

function isQuantities(quantities: JsonObject): boolean {
  for (const key in quantities) {
    const quantity = quantities[key];
    if (typeof quantity !== "string" || !PLAIN_QUANTITY.test(quantity)) return false;
  }
  return !isRawNumber(quantities);
}

/** A number that JavaScript cannot carry is an object with `rawJSON`. */
const isNamed: Check = ({ name, rawJSON }) => isText(name) && !isGiven(rawJSON);

const isVariable: Check = ({ name, value, rawJSON }) => isText(name) && isText(value) && !isGiven(rawJSON);

const isMount: Check = ({ name, mountPath, subPathExpr, rawJSON }) =>
  isText(name) && isText(mountPath) && isText(subPathExpr) && !isGiven(rawJSON);

const isDevice: Check = ({ name, devicePath, rawJSON }) => isText(name) && isText(devicePath) && !isGiven(rawJSON);

const isResources: Check = ({ limits, requests, rawJSON }) =>
  isObject(limits, isQuantities) && isObject(requests, isQuantities) && !isGiven(rawJSON);

const isContainer: Check = ({ name, image, restartPolicy, env, resources, volumeMounts, volumeDevices, rawJSON }) =>
  isText(name) &&
  isText(image) &&
  isText(restartPolicy) &&
  isList(env, isVariable) &&
  isObject(resources, isResources) &&
  isList(volumeMounts, isMount) &&
  isList(volumeDevices, isDevice) &&
  !isGiven(rawJSON);

const isOwner: Check = ({ apiVersion, kind, name, uid, controller, rawJSON }) =>
  [apiVersion, kind, name, uid].every(isText) &&
  (typeof controller === "boolean" || !isGiven(controller)) &&
  !isGiven(rawJSON);

const isMetadata: Check = (metadata) => {
  const { name, generateName, namespace, deletionTimestamp, labels, annotations, ownerReferences, rawJSON } = metadata;
  return (
    [name, generateName, namespace, deletionTimestamp].every(isText) &&
    isObject(labels, isTexts) &&
    isObject(annotations, isTexts) &&
    isList(ownerReferences, isOwner) &&
    !isGiven(rawJSON)
  );
};

const isGate: Check = ({ conditionType, rawJSON }) => isText(conditionType) && !isGiven(rawJSON);

const isSpec: Check = ({ initContainers, containers, volumes, imagePullSecrets, readinessGates, rawJSON }) =>
  isList(initContainers, isContainer) &&
  isList(containers, isContainer) &&
  isList(volumes, isNamed) &&
  isList(imagePullSecrets, isNamed) &&
  isList(readinessGates, isGate) &&
  !isGiven(rawJSON);

const isStatus: Check = ({ phase, rawJSON }) => isText(phase) && !isGiven(rawJSON);

const isPod: Check = ({ metadata, spec, status, rawJSON }) =>
  isObject(metadata, isMetadata) && isObject(spec, isSpec) && isObject(status, isStatus) && !isGiven(rawJSON);

/** A sentence that names the field; undefined for a pod. */
export function podProblem(object: unknown): string | undefined {
  if (!isGiven(object)) return "there is no content to decode";
  return isJsonObject(object) && isPod(object) ? undefined : decodingProblem(object);
}
