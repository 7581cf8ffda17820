/** Finds pods that tests write out instead of calling `objects.ts`; `npm run check:house` counts them. */
import ts from "typescript";

const PODS: ReadonlySet<string | undefined> = new Set(["Pod", "Promise<Pod>"]);

/**
 * Counts the pods among a file's object literals: metadata with a spec or a status, with the kind or the type of a pod.
 */
export function podLiterals(file: string, text: string): number {
  let count = 0;
  const visit = (node: ts.Node): void => {
    if (ts.isObjectLiteralExpression(node) && isPod(node)) count++;
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true));
  return count;
}

/** True for a literal that is a pod. A literal that spreads another pod is only a change of it. */
function isPod(literal: ts.ObjectLiteralExpression): boolean {
  if (literal.properties.some(ts.isSpreadAssignment)) return false;
  const names = new Set(literal.properties.map((property) => property.name?.getText()));
  if (!names.has("metadata") || !(names.has("spec") || names.has("status"))) return false;
  return literal.properties.some(isKindOfPods) || isTypedPod(literal);
}

function isKindOfPods(property: ts.ObjectLiteralElementLike): boolean {
  return ts.isPropertyAssignment(property) && /^kind: *"Pod"$/.test(property.getText());
}

/** Checks the type that the literal is assigned to, returned as or cast to. */
function isTypedPod({ parent }: ts.Node): boolean {
  if (ts.isAsExpression(parent) || ts.isSatisfiesExpression(parent))
    return PODS.has(parent.type.getText()) || isTypedPod(parent);
  if (ts.isParenthesizedExpression(parent) || ts.isConditionalExpression(parent)) return isTypedPod(parent);
  if (ts.isVariableDeclaration(parent) || ts.isArrowFunction(parent)) return PODS.has(parent.type?.getText());
  return ts.isReturnStatement(parent) && PODS.has(ts.findAncestor(parent, ts.isFunctionLike)?.type?.getText());
}
