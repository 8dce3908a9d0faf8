/** Maps stack traces to source files and lines. The first trace through a file reads its source map from the assets. */
import { SourceMap } from "node:module"
import { textOf } from "./Assets.ts"

const maps = new Map<string, SourceMap | undefined>()

const mapOf = (file: string): SourceMap | undefined => {
  if (!maps.has(file)) maps.set(file, read(`${file}.map`))
  return maps.get(file)
}

const read = (asset: string): SourceMap | undefined => {
  try {
    return new SourceMap(JSON.parse(textOf(asset)))
  } catch {
    return undefined
  }
}

const placeOf = (frame: NodeJS.CallSite): string | undefined => {
  const file = frame.getFileName()
  const line = frame.getLineNumber()
  const column = frame.getColumnNumber()
  if (line === null || column === null || file?.startsWith("node:") !== false) return undefined
  const found = mapOf(file)?.findEntry(line - 1, column - 1)
  return found !== undefined && "originalSource" in found
    ? `${found.originalSource.replace(/^(\.\.\/)+/, "")}:${found.originalLine + 1}:${found.originalColumn + 1}`
    : undefined
}

const shown = (frame: NodeJS.CallSite): string => {
  const place = placeOf(frame)
  if (place === undefined) return frame.toString()
  const name = frame.getFunctionName()
  return name === null ? place : `${name} (${place})`
}

export const install = (): void => {
  Error.prepareStackTrace = (error, frames) =>
    [`${error.name}: ${error.message}`, ...frames.map((frame) => `    at ${shown(frame)}`)].join("\n")
}
