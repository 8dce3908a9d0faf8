/** Multipart forms: recognizes their content type, reads the names of a part, and parses complete forms. */
import { Either } from "effect"
import * as Multipasta from "multipasta"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"

/**
 * The maximum length of a form's content type. A boundary can have up to 70 characters (RFC 2046). Searching a megabyte for a boundary of thousands
 * of characters can take more than a second.
 */
const typeLengthMax = 256

/** Returns whether the content type denotes a form and contains a boundary. */
export const isForm = (type: string): boolean =>
  type.length <= typeLengthMax &&
  /^\s*multipart\/form-data\s*;/i.test(type) &&
  /;\s*boundary=(?:"[^"]+"|[^\s;"]+)/i.test(type)

/** Reads the names of a part and of its file directly from the header, because the parser supports only Latin-1. */
export const dispositionOf = ({
  headers
}: Multipasta.PartInfo): { readonly name: string; readonly filename?: string } => {
  const header = String(headers["content-disposition"] ?? "")
  const parameters = new Map<string, string>()
  for (const [, key, quoted, bare] of header.matchAll(/;\s*([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/g)) {
    parameters.set(key!.toLowerCase(), quoted === undefined ? bare! : quoted.replace(/\\(["\\])/g, "$1"))
  }
  const encoded = /^utf-8''(.*)$/i.exec(parameters.get("filename*") ?? "")?.[1]
  const filename = encoded === undefined ? parameters.get("filename") : decodeURIComponent(encoded)
  return { name: parameters.get("name") ?? "", ...(filename !== undefined && { filename }) }
}

export const unreadable = InvalidRequest.of("", "must be a complete, readable form")
export const notForm = InvalidRequest.of("", "must be multipart/form-data with a boundary of up to 70 characters")

export interface FilePart {
  readonly field: string
  readonly name: string
  readonly bytes: Buffer
}

export interface Form {
  /** Files, in order of arrival. */
  readonly files: ReadonlyArray<FilePart>
  /** The text of each other field, or an array if the field is repeated. */
  readonly texts: Readonly<Record<string, unknown>>
}

const partsMax = 64
const textBytesMax = 256 * 1024

export const formOf = (type: string, bytes: Buffer): Either.Either<Form, InvalidRequest> => {
  if (!isForm(type)) return Either.left(notForm)
  const texts: Record<string, unknown> = Object.create(null)
  const files: Array<FilePart> = []
  let whole: boolean | undefined
  try {
    const parser = Multipasta.make({
      headers: { "content-type": type },
      maxParts: partsMax,
      maxFieldSize: textBytesMax,
      isFile: (info) => dispositionOf(info).filename !== undefined || Multipasta.defaultIsFile(info),
      onField: (info, value) => {
        const { name } = dispositionOf(info)
        const text = Multipasta.decodeField(info, value)
        texts[name] = name in texts ? [texts[name], text].flat() : text
      },
      onFile: (info) => {
        const { filename, name } = dispositionOf(info)
        const chunks: Array<Uint8Array> = []
        return (chunk) => {
          if (chunk !== null) chunks.push(chunk)
          // An empty name means that the user chose no file.
          else if (filename !== "") files.push({ field: name, name: filename ?? name, bytes: Buffer.concat(chunks) })
        }
      },
      onError: () => {
        whole = false
      },
      onDone: () => {
        whole ??= true
      }
    })
    parser.write(bytes)
    parser.end()
  } catch {
    // The parser throws on an invalid encoded file name.
    return Either.left(unreadable)
  }
  return whole === true ? Either.right({ files, texts }) : Either.left(unreadable)
}
