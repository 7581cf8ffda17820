import { afterEach, expect, test, vi } from "vitest";
import { isRawNumber } from "../../shared/go/json/json-number.ts";
import { readAdmissionReview, readConversionReview } from "../../shared/webhook/review/review.ts";

const BIG = "9007199254740993";

function bodyWith(request: string): string {
  const resource = '"resource":{"group":"","version":"v1","resource":"pods"}';
  return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE",${resource},${request}}}`;
}

function find(value: unknown): readonly string[] {
  if (isRawNumber(value)) return [value.rawJSON];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(find) : [];
}

afterEach(() => {
  vi.restoreAllMocks();
});

test.each([
  `"object":{"spec":{"a":[{"b":${BIG}}]}}`,
  `"object":{"metadata":{"managedFields":[{"fieldsV1":{"a":${BIG}}}]}}`,
  `"object":null,"oldObject":{"metadata":{"managedFields":${BIG}}}`,
  `"object":null,"options":{"a":${BIG}}`,
  `"object":{"a":1e400}`,
  `"object":{"a":-${BIG}}`,
])("readAdmissionReview rounds no number: %s", (request) => {
  const { request: read, isPlain } = readAdmissionReview(bodyWith(request));
  expect(isPlain).toBe(false);
  expect(find(read)).toEqual([/(-?9007199254740993|1e400)/.exec(request)?.[0]]);
});

test.each([
  [1, '"object":{"a":1,"b":-9007199254740991,"c":0.1234567890123456789}', true],
  [1, `"object":{"a":"${BIG}"}`, true],
  [1, `"object":{"a":[${"{},".repeat(30_000)}{}]}`, false],
  [1, `"object":${"[".repeat(5_000)}${"]".repeat(5_000)}`, false],
  [2, `"object":{"a":[${"{},".repeat(30_000)}${BIG}]}`, false],
])("readAdmissionReview parses a body %i time(s): %s", (times, request, plain) => {
  const parse = vi.spyOn(JSON, "parse");
  expect(readAdmissionReview(bodyWith(request)).isPlain).toBe(plain);
  expect(parse).toHaveBeenCalledTimes(times);
});

const MANAGED = ',"managedFields":[{"manager":"m","fieldsV1":{"f:spec":{"k:{\\"name\\":\\"a\\"}":{"f:a":{}}}}}]';

function read(request: string) {
  return readAdmissionReview(bodyWith(request)).request as unknown;
}

function parsed(request: string) {
  return (JSON.parse(bodyWith(request)) as { readonly request: unknown }).request;
}

test.each([
  `"object":{"metadata":{"name":"a"${MANAGED}},"spec":{"a":1},"status":{}}`,
  `"userInfo":{"extra":{"a":["b"]}},"object":{"metadata":{"name":"a"${MANAGED}},"spec":{}},"oldObject":null`,
  `"object":{"metadata":{"labels":{"a":",\\"managedFields\\":["}${MANAGED}},"spec":{"b":"]},\\"spec\\":"}}`,
  `"object":{"metadata":{"name":"a"${MANAGED},"namespace":"n","ownerReferences":[{}]},"spec":{}}`,
  `"object":null,"oldObject":{"metadata":{"name":"a"${MANAGED}},"spec":{}}`,
])("readAdmissionReview drops only the managed fields of a pod: %s", (request) => {
  expect(read(request)).toEqual(parsed(request.replace(MANAGED, "")));
});

test.each([
  `"object":{"metadata":{"name":"a"}}`,
  `"object":{"metadata":{"managedFields":[{}],"name":"a"}}`,
  `"object":{"metadata":{"name":"a","managedFields":[{"a":{"b":[1]},"spec":{}}]},"spec":{}}`,
  `"object":{"metadata":{"name":"a","managedFields":[{"a":"]"}]},"spec":{}}`,
  `"object":{"metadata":{"name":"a","managedFields":[[],[{"a":"\\"]"}]]},"spec":{}}`,
  `"object":{"metadata":{"name":"a","managedFields":{"b":[1]}},"spec":{}}`,
])("readAdmissionReview keeps managed fields that it cannot find in the text: %s", (request) => {
  expect(read(request)).toEqual(parsed(request));
});

test("managed fields of a SidecarSet are kept", () => {
  const body = bodyWith(`"object":{"metadata":{"name":"a"${MANAGED}},"spec":{}}`).replace('"pods"', '"sidecarsets"');
  const { request } = JSON.parse(body) as { readonly request: unknown };
  const parse = vi.spyOn(JSON, "parse");
  expect(readAdmissionReview(body).request).toEqual(request);
  expect(parse).toHaveBeenCalledTimes(1);
});

test("managed fields of a SidecarSet that mentions pods are kept", () => {
  const rule = '{"a":{"resource":"pods"}}';
  const body = bodyWith(`"object":{"metadata":{"name":"a"${MANAGED}},"spec":${rule}}`).replace(
    '"pods"',
    '"sidecarsets"',
  );
  const { request } = JSON.parse(body) as { readonly request: unknown };
  expect(readAdmissionReview(body).request).toEqual(request);
});

test.each(["group", "version", "resource"])("a review without its resource's %s is refused with that name", (field) => {
  const without = bodyWith('"object":null').replace(new RegExp(`"${field}":"[^"]*"`), `"${field}":1`);
  expect(() => readAdmissionReview(without)).toThrow(`the review has no request.resource.${field}`);
});

test.each(["{}", '{"apiVersion":1,"kind":"AdmissionReview"}'])(
  "the body %s is refused with the kinds of reviews that are expected",
  (body) => {
    expect(() => readAdmissionReview(body)).toThrow(
      "expected a AdmissionReview of admission.k8s.io/v1 or admission.k8s.io/v1beta1",
    );
  },
);

test.each(["1", "[1]", "null"])("a conversion whose objects are %s is refused", (objects) => {
  const request = `{"uid":"u","desiredAPIVersion":"v","objects":${objects}}`;
  expect(() =>
    readConversionReview(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":${request}}`),
  ).toThrow("the ConversionReview's request.objects is not a list of objects");
});
