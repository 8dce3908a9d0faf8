/**
 * Reads a multipart form as it arrives and writes its audio to disk, with backpressure. The parser is called directly, because the platform's wrapper
 * fails on file names that are not Latin-1.
 */
import { Effect } from "effect"
import * as Multipasta from "multipasta"
import { createWriteStream } from "node:fs"
import type { WriteStream } from "node:fs"
import type { Readable } from "node:stream"
import { bodyProblemOf } from "../../http/transport/Incoming.ts"
import type { BodyProblem } from "../../http/transport/Incoming.ts"
import { dispositionOf, unreadable } from "../../http/transport/Multipart.ts"
import type { PayloadTooLarge } from "../../http/contract/Problems.ts"
import { fileBytesMax } from "./Length.ts"
import { AudioTooLarge } from "./Problems.ts"

export interface Form {
  /** The first file of the field `file`. */
  readonly audio: FormFile | undefined
  /** The other fields. Each value is a string, an array of strings if the field is repeated, or `null` if it is a file. */
  readonly texts: Readonly<Record<string, unknown>>
}

export interface FormFile {
  readonly name: string
  readonly content_type: string
  readonly bytes: number
}

export type FormProblem = Exclude<BodyProblem, PayloadTooLarge> | AudioTooLarge

/** Reads a form of this content type and writes its audio to `path`. */
export const formFrom = (source: Readable, type: string, path: string): Effect.Effect<Form, FormProblem> =>
  Effect.async((resume) => {
    const reading = new Reading(source, type, path, resume)
    reading.begin()
    return Effect.sync(() => reading.stop())
  })

type Outcome = Effect.Effect<Form, FormProblem>

/**
 * A form that is being read. Reading ends once: at the last boundary, when the body or connection ends early, when the form is too large or invalid,
 * or when writing fails.
 */
class Reading {
  private over = false
  private audio: { readonly name: string; readonly content_type: string; bytes: number } | undefined
  private readonly texts: Record<string, unknown> = Object.create(null)
  private readonly source: Readable
  private readonly disk: WriteStream
  private readonly parser: Multipasta.Parser
  private readonly resume: (outcome: Outcome) => void

  constructor(source: Readable, type: string, path: string, resume: (outcome: Outcome) => void) {
    this.source = source
    this.resume = resume
    this.disk = createWriteStream(path).once("error", this.diskFailed)
    this.parser = Multipasta.make({
      headers: { "content-type": type },
      maxParts: 32,
      maxFieldSize: 64 * 1024,
      isFile: (info) => dispositionOf(info).filename !== undefined || Multipasta.defaultIsFile(info),
      onField: this.field,
      onFile: this.file,
      onError: this.cutShort,
      onDone: () => this.end(Effect.succeed({ audio: this.audio, texts: this.texts }))
    })
  }

  begin(): void {
    const { source } = this
    if (source.destroyed) this.failed(source.errored)
    // The parser may already have rejected the boundary.
    if (this.over) return
    source.on("data", this.data).once("end", this.ended).once("close", this.cutShort).once("error", this.failed)
  }

  /** Stops without an outcome. */
  stop(): void {
    this.over = true
    this.detach()
    this.disk.destroy()
  }

  private end(outcome: Outcome): void {
    if (this.over) return
    this.over = true
    this.detach()
    this.disk.end(() => this.resume(outcome))
  }

  /** Discards the remaining body, because the client might otherwise not read the response. */
  private detach(): void {
    const { source } = this
    source.off("data", this.data).off("end", this.ended).off("close", this.cutShort).off("error", this.failed)
    source.destroy()
  }

  // ---- the source -----------------------------------------------------------------------------------------------------------------

  private readonly data = (chunk: Uint8Array): void => {
    this.parse(() => this.parser.write(chunk))
    if (this.over || !this.disk.writableNeedDrain) return
    this.source.pause()
    this.disk.once("drain", () => this.source.resume())
  }

  private readonly ended = (): void => {
    this.parse(() => this.parser.end())
    this.cutShort()
  }

  /** Ends reading if the body or the connection ends before the last boundary, or if the form cannot be read. */
  private readonly cutShort = (): void => this.end(unreadable)

  private readonly failed = (error: unknown): void => {
    const problem = bodyProblemOf(error)
    this.end(problem._tag === "PayloadTooLarge" ? new AudioTooLarge() : problem)
  }

  private readonly diskFailed = (error: Error): void => {
    this.over = true
    this.detach()
    this.resume(Effect.die(error))
  }

  // ---- the parts ------------------------------------------------------------------------------------------------------------------

  /** Runs a parser step. The parser throws if a file name's encoding is invalid. */
  private parse(step: () => void): void {
    try {
      step()
    } catch {
      this.cutShort()
    }
  }

  private readonly field = (info: Multipasta.PartInfo, value: Uint8Array): void => {
    const { name } = dispositionOf(info)
    const text = Multipasta.decodeField(info, value)
    this.texts[name] = name in this.texts ? [this.texts[name], text].flat() : text
  }

  private readonly file = (info: Multipasta.PartInfo): ((chunk: Uint8Array | null) => void) => {
    const { filename, name } = dispositionOf(info)
    // The client selected no file.
    if (filename === "") return ignore
    if (name !== "file") this.texts[name] = null
    if (name !== "file" || this.audio !== undefined) return ignore
    const content_type = info.headers["content-type"] === undefined ? "application/octet-stream" : info.contentType
    const audio = (this.audio = { name: filename ?? name, content_type, bytes: 0 })
    return (chunk) => {
      if (chunk === null || this.over) return
      audio.bytes += chunk.length
      if (audio.bytes > fileBytesMax) this.end(new AudioTooLarge())
      else this.disk.write(chunk)
    }
  }
}

const ignore = () => {}
