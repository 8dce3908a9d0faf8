/** Appends files to another file: first their bytes, then their positions as JSON, the JSON's length, and a marker. */

export interface Place {
  readonly position: number
  readonly length: number
}

const mark = "tollgate"

/** The length of the trailer: eight bytes for the JSON's length, plus the marker. */
const endBytes = 8 + mark.length

/** Returns the bytes to append to a file of this size. */
export const packed = (size: number, files: ReadonlyArray<readonly [name: string, bytes: Buffer]>): Buffer => {
  let position = size
  const places = files.map(([name, { length }]) => {
    const place: Place = { position, length }
    position += length
    return [name, place] as const
  })
  const index = Buffer.from(JSON.stringify(places))
  const end = Buffer.alloc(endBytes, mark, "latin1")
  end.writeBigUInt64LE(BigInt(index.length))
  end.write(mark, 8, "latin1")
  return Buffer.concat([...files.map(([, bytes]) => bytes), index, end])
}

/** Reads the files' positions in a packed file of this size. */
export const placesIn = (size: number, read: (place: Place) => Buffer): ReadonlyMap<string, Place> => {
  const end = read({ position: size - endBytes, length: endBytes })
  if (end.toString("latin1", 8) !== mark)
    throw new Error("the end of the executable is missing: the file was truncated or stripped")
  const length = Number(end.readBigUInt64LE())
  return new Map(JSON.parse(read({ position: size - endBytes - length, length }).toString()) as Array<[string, Place]>)
}
