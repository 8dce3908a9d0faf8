/** An uploaded audio file: it lies on disk while the call lasts, and is never whole in memory. */
import { FileSystem, Path } from "@effect/platform"
import { Effect, Either, Schema } from "effect"
import type { Scope } from "effect"
import * as Multipasta from "multipasta"
import { createHash } from "node:crypto"
import { createReadStream, createWriteStream } from "node:fs"
import type { Readable } from "node:stream"
import type { Inbound } from "../http/Inbound.ts"
import { bodyProblemOf } from "../http/Incoming.ts"
import type { BodyProblem } from "../http/Incoming.ts"
import { InvalidRequest } from "../kernel/InvalidRequest.ts"
import type { PayloadTooLarge } from "../http/Problems.ts"
import { AudioTooLarge } from "./Problems.ts"
import { TranscriptionFields } from "./Fields.ts"
import { fileBytesMax } from "./Length.ts"

export interface Upload {
  readonly fields: TranscriptionFields
  readonly path: string
  readonly name: string
  readonly content_type: string
  readonly bytes: number
  /** Of the file and the fields together. */
  readonly fingerprint: string
}

/** Why there is no upload. */
export type UploadProblem = Exclude<BodyProblem, PayloadTooLarge> | AudioTooLarge

/** Room for the form around the file. */
const formBytesMax = 1024 * 1024

/** Reads the form onto the disk; the file goes with the scope. */
export const receive = (
  inbound: Inbound
): Effect.Effect<Upload, UploadProblem, Scope.Scope | FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const type = inbound.header("content-type") ?? ""
    if (!isForm(type)) return yield* noForm("multipart/form-data with a boundary")
    const files = yield* FileSystem.FileSystem
    const folder = yield* Effect.orDie(files.makeTempDirectoryScoped())
    // Never by the name that the client gives.
    const path = (yield* Path.Path).join(folder, "audio")
    const source = yield* inbound.stream(fileBytesMax + formBytesMax)
    const { audio, texts } = yield* formFrom(source, type, path)
    if (audio === undefined) {
      return yield* new InvalidRequest({
        message: "file: required, the audio file",
        field: "file",
        rule: "an audio file"
      })
    }
    const fields = yield* Either.mapLeft(readFields(texts), InvalidRequest.ofDecoding)
    const { bytes, content_type, name } = audio
    if (bytes === 0) {
      return yield* new InvalidRequest({ message: "file: it is empty", field: "file", rule: "not empty" })
    }
    const hash = createHash("sha256").update(JSON.stringify(fields))
    yield* Effect.promise(async () => {
      for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
    })
    return { fields, path, name, content_type, bytes, fingerprint: hash.digest("hex") }
  })

/** The media type, and a boundary that is not empty: without one there is no telling the parts from each other. */
const isForm = (type: string): boolean =>
  /^\s*multipart\/form-data\s*;/i.test(type) && /;\s*boundary=(?:"[^"]+"|[^\s;"]+)/i.test(type)

const noForm = (rule: string) => new InvalidRequest({ message: `the request: ${rule}`, field: "", rule })

const unreadable = noForm("a form that can be read, and comes whole")

interface Form {
  /** The first file of the field `file`. */
  readonly audio: { readonly name: string; readonly content_type: string; readonly bytes: number } | undefined
  /** The text of each other field; a list where it stands twice, `null` where it is a file. */
  readonly texts: Readonly<Record<string, unknown>>
}

/**
 * Reads the form's parts and writes the audio to `path`, as fast as the disk takes it. The parser is spoken to directly: the
 * platform's way to it takes what its header parser says for granted, and that does not know a part whose file name is outside
 * of Latin-1.
 */
const formFrom = (source: Readable, type: string, path: string): Effect.Effect<Form, UploadProblem> =>
  Effect.async((resume) => {
    const disk = createWriteStream(path)
    const texts: Record<string, unknown> = Object.create(null)
    let audio: { name: string; content_type: string; bytes: number } | undefined
    let over = false

    const end = (exit: Effect.Effect<Form, UploadProblem>) => {
      if (over) return
      over = true
      leave()
      // What still comes of it is thrown away, so that the refusal reaches a client that is still sending.
      source.destroy()
      disk.end(() => resume(exit))
    }
    const cut = () => end(unreadable)
    const failed = (error: unknown) => {
      const problem = bodyProblemOf(error)
      end(problem._tag === "PayloadTooLarge" ? new AudioTooLarge() : problem)
    }
    const parse = (step: () => void) => {
      try {
        step()
      } catch {
        // It throws at an encoded file name that is not encoded right.
        cut()
      }
    }
    const data = (chunk: Uint8Array) => {
      parse(() => parser.write(chunk))
      if (!over && disk.writableNeedDrain) {
        source.pause()
        disk.once("drain", () => source.resume())
      }
    }
    // A form that ends with its body, or with its connection, before its last boundary.
    const finish = () => {
      parse(() => parser.end())
      cut()
    }
    const leave = () => source.off("data", data).off("end", finish).off("close", cut).off("error", failed)

    const parser = Multipasta.make({
      headers: { "content-type": type },
      maxParts: 32,
      maxFieldSize: 64 * 1024,
      isFile: (info) => dispositionOf(info).filename !== undefined || Multipasta.defaultIsFile(info),
      onField: (info, value) => {
        const { name } = dispositionOf(info)
        const text = Multipasta.decodeField(info, value)
        texts[name] = name in texts ? [texts[name], text] : text
      },
      onFile: (info) => {
        const { filename, name } = dispositionOf(info)
        // A form whose file was not chosen.
        if (filename === "") return () => {}
        if (name !== "file") texts[name] = null
        if (name !== "file" || audio !== undefined) return () => {}
        const content_type = info.headers["content-type"] === undefined ? "application/octet-stream" : info.contentType
        const file = (audio = { name: filename ?? name, content_type, bytes: 0 })
        return (chunk) => {
          if (chunk === null || over) return
          file.bytes += chunk.length
          if (file.bytes > fileBytesMax) end(new AudioTooLarge())
          else disk.write(chunk)
        }
      },
      onError: cut,
      onDone: () => end(Effect.succeed({ audio, texts }))
    })
    disk.once("error", (error) => {
      over = true
      leave()
      source.destroy()
      resume(Effect.die(error))
    })
    if (source.destroyed) failed(source.errored)
    // Over already where the parser wants another boundary.
    if (!over) source.on("data", data).once("end", finish).once("close", cut).once("error", failed)
    return Effect.sync(() => {
      over = true
      leave()
      source.destroy()
      disk.destroy()
    })
  })

/** What a part is called, and its file; read from the header itself, since the parser's own reading stops at Latin-1. */
const dispositionOf = ({ headers }: Multipasta.PartInfo): { readonly name: string; readonly filename?: string } => {
  const header = String(headers["content-disposition"] ?? "")
  const parameters = new Map<string, string>()
  for (const [, key, quoted, bare] of header.matchAll(/;\s*([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/g)) {
    parameters.set(key!.toLowerCase(), quoted === undefined ? bare! : quoted.replace(/\\(["\\])/g, "$1"))
  }
  const encoded = /^utf-8''(.*)$/i.exec(parameters.get("filename*") ?? "")?.[1]
  const filename = encoded === undefined ? parameters.get("filename") : decodeURIComponent(encoded)
  return { name: parameters.get("name") ?? "", ...(filename !== undefined && { filename }) }
}

const readFields = Schema.decodeUnknownEither(TranscriptionFields)
