/** Reviews of conversions: all objects of one are converted, or none. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import type { Log } from "../../log.ts";
import { carried, jsonAnswer } from "../server/http.ts";
import type { ReviewAnswerer } from "./app.ts";
import { sizeProblem } from "./object-size.ts";
import { messageOf } from "./response.ts";
import { type ConversionRequest, readConversionReview } from "./review.ts";

/** All objects of the request in its desired version, in order. What it throws becomes a failed conversion. */
type Convert = (request: ConversionRequest) => readonly KubernetesObject[];

/** What answers conversions with it. */
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
      return answer([], { status: "Failure", message: messageOf(error) });
    }
  };
}
