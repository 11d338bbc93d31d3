/** Just enough of MLIR's lexical rules to colour a line and to break a long one. */

export type TokenClass = "comment" | "string" | "value" | "symbol" | "attribute" | "type" | "keyword" | "op" | "number";

export interface Token {
  class: TokenClass;
  start: number;
  end: number;
}

const CLASSES: TokenClass[] = ["comment", "string", "value", "symbol", "attribute", "type", "keyword", "op", "number"];
const TOKEN = new RegExp(
  [
    /(\/\/.*$)/,
    /("(?:[^"\\]|\\.)*")/,
    /(%[\w$.#-]+)/,
    /(@[\w$.-]+)/,
    /([!#^][\w$.-]+)/,
    /(\b(?:tensor|memref|vector|tuple|complex)\b(?=<)|\b(?:(?:[su]?i|ui)\d+|f\d+\w*|bf16|index|none)\b)/,
    /(\b(?:module|func|return|attributes|dense|loc|true|false|unit|public|private|applies|across|cond|do)\b(?!\.))/,
    /(\b[a-z_]\w*(?:\.\w+)+)/,
    /(-?\b(?:0x[0-9A-Fa-f]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\b)/,
  ]
    .map((part) => part.source)
    .join("|"),
  "g",
);

/** Coloured stretches of a line, in order; what lies between them is plain. */
export function tokens(line: string): Token[] {
  const found: Token[] = [];
  TOKEN.lastIndex = 0;
  for (let m = TOKEN.exec(line); m; m = TOKEN.exec(line)) {
    const group = m.findIndex((text, i) => i > 0 && text !== undefined);
    found.push({ class: CLASSES[group - 1]!, start: m.index, end: m.index + m[0].length });
  }
  return found;
}

/** Top-level parts of a list: commas inside strings, braces, brackets, types or nested parentheses do not part. */
function parts(line: string): string[] {
  const found: string[] = [];
  let depth = 0;
  let from = 0;
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    const c = line[i];
    if (quoted) {
      if (c === "\\") i++;
      else if (c === '"') quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === "{" || c === "[" || c === "<") depth++;
    else if (c === "}" || c === "]" || (c === ">" && line[i - 1] !== "-")) depth--;
    else if (c === "," && depth <= 0 && line[i + 1] === " ") {
      found.push(line.slice(from, i + 1));
      from = i + 2;
    }
  }
  found.push(line.slice(from));
  return found;
}

const LONG = 180;
const OPERANDS_A_ROW = 6;

/**
 * A long line as rows: a function's arguments and results one a row, other lists a few a row. The number of parts, not
 * their width, decides, so that the rows of a line and of its rewritten form stand beside each other.
 */
export function wrap(line: string): string[] {
  if (line.length <= LONG) return [line];
  const all = parts(line);
  if (all.length < 3) return [line];
  const indent = `${/^ */.exec(line)![0]}    `;
  const each = /\bfunc\.func\b/.test(line) ? 1 : OPERANDS_A_ROW;
  const rows: string[] = [];
  for (let i = 0; i < all.length; i += each) {
    const row = all.slice(i, i + each).join(" ");
    rows.push(i === 0 ? row : indent + row);
  }
  return rows;
}

/** The operation that a line defines a value with, StableHLO's without its dialect; "" where there is none. */
export function operation(line: string): string {
  return /^\s*%[^=]*= "?(?:stablehlo\.)?([\w.]+)/.exec(line)?.[1] ?? "";
}
