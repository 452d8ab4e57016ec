# Runs after customize.sh: GRUB for the BIOS.
cp /boot/efi/EFI/debian/grub.cfg /tmp/bios.cfg
grub-mkimage -O i386-pc -o /tmp/core.img -p /boot/grub -c /tmp/bios.cfg \
	biosdisk part_gpt ext2 search search_fs_uuid normal configfile linux echo test serial terminal
cp /usr/lib/grub/i386-pc/boot.img /tmp/boot.img
rm /tmp/bios.cfg
