/** Stack traces by source file and line: the map is one of the assets, and is read when the first trace is wanted. */
import { SourceMap } from "node:module"
import { getAsset } from "node:sea"

let map: SourceMap | undefined

const placeOf = (frame: NodeJS.CallSite): string | undefined => {
  const line = frame.getLineNumber()
  const column = frame.getColumnNumber()
  if (line === null || column === null || frame.getFileName()?.startsWith("node:") !== false) return undefined
  map ??= new SourceMap(JSON.parse(getAsset("main.js.map", "utf8")))
  const found = map.findEntry(line - 1, column - 1)
  return "originalSource" in found
    ? `${found.originalSource.replace(/^(\.\.\/)+/, "")}:${found.originalLine + 1}:${found.originalColumn + 1}`
    : undefined
}

const shown = (frame: NodeJS.CallSite): string => {
  const place = placeOf(frame)
  if (place === undefined) return frame.toString()
  const name = frame.getFunctionName()
  return name === null ? place : `${name} (${place})`
}

Error.prepareStackTrace = (error, frames) =>
  [`${error.name}: ${error.message}`, ...frames.map((frame) => `    at ${shown(frame)}`)].join("\n")
