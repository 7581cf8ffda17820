/** Conversion of SidecarSets between their API versions, all of a request or none. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { convertSidecarSet } from "../../core/sidecarset/convert.ts";
import type { Log } from "../../log.ts";
import type { ReviewAnswerer } from "../review/app.ts";
import { sizeProblem } from "../review/object-size.ts";
import { publicMessage } from "../review/response.ts";
import { type ConversionRequest, readConversionReview } from "../review/review.ts";
import { carried, jsonAnswer } from "../server/http.ts";

/** @throws Error when one object cannot be converted; it is named */
export function convertSidecarSets({ objects, desiredAPIVersion }: ConversionRequest): readonly KubernetesObject[] {
  return objects.map((object) => {
    const converted = convertSidecarSet(object, desiredAPIVersion);
    if (converted.kind === "Decoded") return converted.value;
    throw new Error(`SidecarSet ${object.metadata?.name ?? "without a name"}: ${converted.message}`);
  });
}

// Reviews of conversions: all objects of a review are converted, or none.

/** All objects of the request in its desired version, in order. What it throws becomes a failed conversion. */
type Convert = (request: ConversionRequest) => readonly KubernetesObject[];

/** Answers conversion reviews with `convert`. */
export function answerConversions(convert: Convert): (log: Log) => ReviewAnswerer {
  return (log) => (http, body) => {
    const { apiVersion, request } = readConversionReview(body);
    const { uid, desiredAPIVersion } = request;
    const answer = (convertedObjects: readonly KubernetesObject[], result: object) =>
      carried(
        http,
        jsonAnswer(200, { apiVersion, kind: "ConversionReview", response: { uid, convertedObjects, result } }),
      );
    try {
      const message = request.objects.map(sizeProblem).find((problem) => problem !== undefined);
      if (message !== undefined) throw new Error(message);
      const converted = convert(request);
      log.info("conversion", { uid, desiredAPIVersion, objects: converted.length });
      return answer(converted, { status: "Success" });
    } catch (error) {
      log.error("request failed", { path: http.path, error });
      return answer([], { status: "Failure", message: publicMessage(error) });
    }
  };
}
