/** Builds reviews as Function URLs and HTTP APIs send them to a function: payload version 2.0. */
import type { APIGatewayProxyEventV2 } from "aws-lambda";

export function httpEvent(path: string, body: string): APIGatewayProxyEventV2 {
  const http = {
    method: "POST",
    path,
    protocol: "HTTP/1.1",
    sourceIp: "192.0.2.1",
    userAgent: "kube-apiserver-admission",
  };
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath: path,
    rawQueryString: "timeout=30s",
    headers: { "content-type": "application/json", host: "x.lambda-url.eu-central-1.on.aws" },
    requestContext: { http } as APIGatewayProxyEventV2["requestContext"],
    body,
    isBase64Encoded: false,
  };
}

/** Returns the text of an AdmissionReview for the creation of an object. `resource`: group, version, plural. */
export function admissionReview(object: object, resource: readonly [string, string, string]): string {
  const [group, version, plural] = resource;
  const request = {
    uid: "u",
    operation: "CREATE",
    resource: { group, version, resource: plural },
    namespace: "default",
    object,
  };
  return JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
}
