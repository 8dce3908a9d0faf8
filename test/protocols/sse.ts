/** Server-sent events as a test reads them, and a stream as the readers and writers of the protocols turn it. */
import type { Delta } from "../../src/protocols/Delta.ts"
import type { StreamReader, StreamWriter, VendorEvent } from "../../src/protocols/Translation.ts"

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
