/** Server-sent events as a test reads them, and a stream as the readers and writers of the protocols turn it. */
import { expect } from "vitest"
import type { Delta } from "../../src/protocols/conversation/Delta.ts"
import type { StreamReader, StreamWriter, VendorEvent } from "../../src/protocols/conversation/Translation.ts"

/** The events in a text. */
export const eventsIn = (text: string): ReadonlyArray<VendorEvent> =>
  text
    .split("\n\n")
    .filter((block) => block !== "")
    .map((block) => {
      const lines = block.split("\n")
      const value = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
      return { event: value("event"), data: value("data") ?? "" }
    })

/** The steps that a reader finds in events, the end of the bytes included. */
export const stepsOf = (reader: StreamReader, events: ReadonlyArray<VendorEvent>): ReadonlyArray<Delta> => [
  ...events.flatMap((event) => reader.read(event)),
  ...reader.close()
]

/** The text that a writer makes of steps. */
export const textOf = (writer: StreamWriter, deltas: ReadonlyArray<Delta>): string =>
  deltas.map((delta) => writer.write(delta)).join("")

/** The bytes as a client's SDK gets them. */
export const response = (text: string, type = "text/event-stream"): Response =>
  new Response(text, { status: 200, headers: { "content-type": type } })

/** The grammar of the steps of a stream. */
export const expectWellFormed = (deltas: ReadonlyArray<Delta>): void => {
  const open = new Set<number>()
  let parts = 0
  expect(deltas[0]?.type).toMatch(/^(start|failure)$/)
  expect(deltas.at(-1)?.type).toMatch(/^(end|failure)$/)
  for (const [at, delta] of deltas.entries()) {
    if (delta.type === "end" || delta.type === "failure") expect(at).toBe(deltas.length - 1)
    if (delta.type.endsWith("_start")) {
      expect((delta as { index: number }).index).toBe(parts++)
      open.add(parts - 1)
    }
    if (delta.type === "piece" || delta.type === "signature" || delta.type === "part_end")
      expect(open.has(delta.index)).toBe(true)
    if (delta.type === "part_end") open.delete(delta.index)
    if (delta.type === "stop") expect([...open]).toEqual([])
  }
}
