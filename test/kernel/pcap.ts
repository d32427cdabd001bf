/** Capture files as tcpreplay reads them and tcpdump writes them: Ethernet frames in the classic pcap format. */

const magic = 0xa1b2_c3d4
const ethernet = 1

export function printPcap(frames: readonly Buffer[]): Buffer {
  const header = Buffer.alloc(24)
  header.writeUInt32LE(magic, 0)
  header.writeUInt16LE(2, 4)
  header.writeUInt16LE(4, 6)
  header.writeUInt32LE(65_535, 16)
  header.writeUInt32LE(ethernet, 20)
  const records = frames.flatMap((frame) => {
    const record = Buffer.alloc(16)
    record.writeUInt32LE(frame.length, 8)
    record.writeUInt32LE(frame.length, 12)
    return [record, frame]
  })
  return Buffer.concat([header, ...records])
}

/** Reads whole records only: a file that is still being written may end inside one. */
export function parsePcap(bytes: Buffer): Buffer[] {
  if (bytes.length < 24) return []
  if (bytes.readUInt32LE(0) !== magic || bytes.readUInt32LE(20) !== ethernet) {
    throw new Error('not a little-endian pcap file of Ethernet frames')
  }
  const frames: Buffer[] = []
  for (let at = 24; at + 16 <= bytes.length; ) {
    const length = bytes.readUInt32LE(at + 8)
    if (at + 16 + length > bytes.length) break
    frames.push(bytes.subarray(at + 16, at + 16 + length))
    at += 16 + length
  }
  return frames
}
